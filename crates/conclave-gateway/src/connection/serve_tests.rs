//! Who gets a place, who makes room for whom, and clients that do not read.

use super::*;
use futures_util::FutureExt;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[test]
fn whoever_is_idle_longest_makes_room_and_nobody_who_is_answered() {
    let places = ConnectionPlaces::new(3, 3);
    let take = || places.take(HERE);
    let (first, second, third) = (take().unwrap(), take().unwrap(), take().unwrap());
    let busy = first.occupy();
    let fourth = take().unwrap();
    assert!(second.wait_until_wanted().now_or_never().is_some(), "the oldest that says nothing");
    assert!(
        first.wait_until_wanted().now_or_never().is_none()
            && third.wait_until_wanted().now_or_never().is_none()
    );
    let (also, too) = (third.occupy(), fourth.occupy());
    assert!(take().is_none(), "all are being answered");
    drop(busy);
    assert!(take().is_some());
    assert!(first.wait_until_wanted().now_or_never().is_some());
    drop((also, too, second));
    assert!(places.lock().holders.len() <= 3);
}

#[test]
fn a_place_is_given_back() {
    let places = ConnectionPlaces::new(1, 1);
    for _ in 0..10 {
        let place = places.take(HERE).unwrap();
        let _busy = place.occupy();
        assert!(places.take(HERE).is_none());
    }
    assert!(places.lock().each.is_empty(), "addresses are forgotten with their last place");
}

#[test]
fn one_address_cannot_take_every_place_however_busy_it_is() {
    let places = ConnectionPlaces::new(4, 2);
    let near: IpAddr = "2001:db8::1".parse().unwrap();
    let next_door: IpAddr = "2001:db8::2".parse().unwrap();
    let (first, second) = (places.take(near).unwrap(), places.take(next_door).unwrap());
    let _busy = (first.occupy(), second.occupy());
    assert!(places.take(near).is_none());
    let other = places.take(HERE).unwrap();
    assert!(places.take(HERE).is_some() && other.wait_until_wanted().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut_off_and_a_slow_one_is_not() {
    let timeout = Duration::from_secs(30);
    let (ours, mut theirs) = duplex(1_024);
    let mut stream = PatientStream::new(ours, timeout);
    let reading = tokio::spawn(async move {
        let mut piece = [0; 1_024];
        for _ in 0..20 {
            sleep(Duration::from_secs(20)).await;
            theirs.read_exact(&mut piece).await.unwrap();
        }
        theirs
    });
    stream.write_all(&[b' '; 20 * 1_024]).await.unwrap();
    let _theirs = reading.await.unwrap();
    let began = Instant::now();
    let error = stream.write_all(&[b' '; 2_048]).await.unwrap_err();
    assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, timeout));
}
