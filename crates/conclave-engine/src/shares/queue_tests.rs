//! Who is next, told step by step: no clock, no threads.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn sharer(tenant: &str, key: &str) -> Sharer {
    Sharer { tenant: TenantId::new(tenant).unwrap(), key: Some(KeyId::new(key).unwrap()) }
}

/// Everybody asks anew as soon as they were served; whose work was done in how many of `rounds`.
fn serve(rounds: usize, places: usize, clients: &[(Sharer, u64)]) -> Vec<usize> {
    let mut queue = ShareQueue::new(places);
    let mut asked: BTreeMap<Ticket, usize> = clients
        .iter()
        .enumerate()
        .map(|(at, (who, _))| (queue.join(who, Stage::New), at))
        .collect();
    let mut served = vec![0; clients.len()];
    for _ in 0..rounds {
        let ticket = queue.call_next().expect("somebody always waits");
        let at = asked.remove(&ticket).unwrap();
        let (who, took_ns) = &clients[at];
        queue.leave(who, ticket, *took_ns);
        served[at] += 1;
        asked.insert(queue.join(who, Stage::New), at);
    }
    served
}

#[test]
fn eight_clients_of_one_key_get_no_more_than_one_client_of_another() {
    let mut clients = vec![(sharer("acme", "loud"), 100 * MS); 8];
    clients.push((sharer("acme", "quiet"), 100 * MS));
    let served = serve(900, 1, &clients);
    let loud: usize = served[..8].iter().sum();
    assert!(loud.abs_diff(served[8]) <= 1, "{loud} against {}", served[8]);
}

#[test]
fn a_tenant_with_many_keys_gets_no_more_than_one_with_one() {
    let many = (0..8).map(|at| (sharer("loud", &format!("key{at}")), 100 * MS));
    let mut clients: Vec<_> = many.collect();
    clients.push((sharer("quiet", "one"), 100 * MS));
    let served = serve(900, 1, &clients);
    let loud: usize = served[..8].iter().sum();
    assert!(loud.abs_diff(served[8]) <= 1, "{loud} against {}", served[8]);
}

#[test]
fn whose_work_is_short_gets_the_same_time_and_so_more_of_it_done() {
    let clients = [(sharer("acme", "long"), 900 * MS), (sharer("acme", "short"), 9 * MS)];
    let served = serve(1_010, 1, &clients);
    assert!((9..=11).contains(&served[0]), "{served:?}");
}

#[test]
fn whoever_comes_anew_has_saved_up_nothing_and_is_not_behind_either() {
    let mut queue = ShareQueue::new(1);
    let (old, new) = (sharer("acme", "a"), sharer("acme", "b"));
    let mut waiting = queue.join(&old, Stage::New);
    for _ in 0..50 {
        assert_eq!(queue.call_next(), Some(waiting));
        let next = queue.join(&old, Stage::New);
        queue.leave(&old, waiting, 10 * MS);
        waiting = next;
    }
    let mut of_new = 0;
    let mut fresh = queue.join(&new, Stage::New);
    for _ in 0..20 {
        let called = queue.call_next().unwrap();
        let who = if called == fresh { &new } else { &old };
        of_new += usize::from(called == fresh);
        let next = queue.join(who, Stage::New);
        *(if called == fresh { &mut fresh } else { &mut waiting }) = next;
        queue.leave(who, called, 10 * MS);
    }
    assert!((9..=11).contains(&of_new), "{of_new} of 20");
}

#[test]
fn what_was_begun_comes_before_what_is_new_of_the_same_key() {
    let (mut queue, who) = (ShareQueue::new(1), sharer("acme", "a"));
    let (new, begun) = (queue.join(&who, Stage::New), queue.join(&who, Stage::Begun));
    assert_eq!(queue.call_next(), Some(begun));
    assert_eq!(queue.call_next(), None, "one place");
    queue.leave(&who, begun, MS);
    assert_eq!(queue.call_next(), Some(new));
}

#[test]
fn whoever_has_nothing_under_way_comes_before_whoever_has() {
    let mut queue = ShareQueue::new(2);
    let (loud, quiet) = (sharer("loud", "a"), sharer("quiet", "b"));
    let first = queue.join(&loud, Stage::New);
    queue.join(&loud, Stage::New);
    assert_eq!(queue.call_next(), Some(first));
    let late = queue.join(&quiet, Stage::New);
    assert_eq!(queue.call_next(), Some(late));
    assert_eq!((queue.call_next(), queue.waiting_of(&loud)), (None, 1));
}

#[test]
fn whoever_stops_waiting_leaves_no_trace() {
    let (mut queue, who) = (ShareQueue::new(1), sharer("acme", "a"));
    let (first, second) = (queue.join(&who, Stage::New), queue.join(&who, Stage::New));
    queue.leave(&who, second, 0);
    assert_eq!(queue.call_next(), Some(first));
    queue.leave(&who, first, MS);
    assert_eq!(queue.call_next(), None);
    assert!(queue.tenants.is_empty());
}

proptest! {
    /// Whatever is asked, given up and finished: places are kept to, none stays free, nothing is lost.
    #[test]
    fn places_are_kept_to_and_everybody_is_served(
        places in 1_usize..4,
        steps in prop::collection::vec((0_u8..3, 0_u8..3, 0_u8..4, any::<bool>(), 0_u64..50), 1..120),
    ) {
        let mut queue = ShareQueue::new(places);
        let (mut waiting, mut working) = (BTreeMap::new(), Vec::new());
        for (tenant, key, act, begun, took) in steps {
            let who = sharer(&format!("t{tenant}"), &format!("k{key}"));
            match act {
                0 | 1 => {
                    let stage = if begun { Stage::Begun } else { Stage::New };
                    waiting.insert(queue.join(&who, stage), who);
                }
                2 if !working.is_empty() => {
                    let (ticket, who) = working.remove(0);
                    queue.leave(&who, ticket, took);
                }
                _ => if let Some((ticket, who)) = waiting.pop_first() {
                    queue.leave(&who, ticket, 0);
                }
            }
            while let Some(ticket) = queue.call_next() {
                working.push((ticket, waiting.remove(&ticket).expect("it waited")));
            }
            prop_assert!(working.len() <= places);
            prop_assert!(waiting.is_empty() || working.len() == places);
        }
        while let Some((ticket, who)) = working.pop() {
            queue.leave(&who, ticket, 1);
            while let Some(ticket) = queue.call_next() {
                working.push((ticket, waiting.remove(&ticket).expect("it waited")));
            }
        }
        prop_assert!(waiting.is_empty() && queue.tenants.is_empty() && queue.at_work == 0);
    }
}
