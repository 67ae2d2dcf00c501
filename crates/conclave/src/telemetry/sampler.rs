//! Which turns are traced.

use anyhow::anyhow;

/// Which turns are traced: as the caller decided, where one did, else a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampler {
    heeds_parent: bool,
    /// Of 2^32 traces, so many.
    share: u64,
}

const ALL: u64 = 1 << 32;

impl Sampler {
    /// Reads the two variables; without them, everything is traced unless the caller says otherwise.
    ///
    /// # Errors
    /// When they name no sampler.
    pub(super) fn read(name: Option<&str>, argument: Option<&str>) -> anyhow::Result<Self> {
        let name = name.unwrap_or("parentbased_always_on");
        let own = name.strip_prefix("parentbased_");
        let share = match own.unwrap_or(name) {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => share(argument.unwrap_or("1"))?,
            _ => {
                return Err(anyhow!(
                    "OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, or one of \
                     them after parentbased_"
                ));
            }
        };
        Ok(Self { heeds_parent: own.is_some(), share })
    }

    /// Whether this trace is written.
    pub(super) fn takes(self, trace_id: &[u8; 16], parent: Option<bool>) -> bool {
        match parent {
            Some(decided) if self.heeds_parent => decided,
            // The last bytes of an id are the random ones.
            _ => {
                let [.., a, b, c, d] = *trace_id;
                u64::from(u32::from_be_bytes([a, b, c, d])) < self.share
            }
        }
    }
}

/// A share from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the share is between 0 and 1, and nothing is decided by it but what is traced"
)]
fn share(text: &str) -> anyhow::Result<u64> {
    let odd = || anyhow!("OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1");
    let share: f64 = text.parse().map_err(|_| odd())?;
    if !(0.0..=1.0).contains(&share) {
        return Err(odd());
    }
    Ok((share * ALL as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_decides_where_it_did() {
        let low = [0; 16];
        let high = [255; 16];
        for (name, argument, parent, expected) in [
            (None, None, None, (true, true)),
            (None, None, Some(false), (false, false)),
            (Some("always_on"), None, Some(false), (true, true)),
            (Some("parentbased_always_off"), None, None, (false, false)),
            (Some("parentbased_always_off"), None, Some(true), (true, true)),
            (Some("traceidratio"), Some("0.25"), None, (true, false)),
            (Some("parentbased_traceidratio"), Some("0"), None, (false, false)),
        ] {
            let sampler = Sampler::read(name, argument).unwrap();
            let found = (sampler.takes(&low, parent), sampler.takes(&high, parent));
            assert_eq!(found, expected, "{name:?} {argument:?} {parent:?}");
        }
        for odd in ["2", "-1", "NaN", "some"] {
            assert!(Sampler::read(Some("traceidratio"), Some(odd)).is_err(), "{odd}");
        }
    }
}
