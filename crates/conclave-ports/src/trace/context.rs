//! The context of a trace as W3C writes it: `traceparent` and `tracestate`.
//!
//! **Invariant:** a header that is not written as the recommendation says is as good as none: nothing
//! of it is handed on.

/// How long a `tracestate` may be.
const STATE_BYTES_MAX: usize = 512;
/// How many members it may have.
const STATE_MEMBERS_MAX: usize = 32;

/// Which trace a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id all its spans share.
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub parent: Option<[u8; 8]>,
    /// Whether it is recorded.
    pub is_sampled: bool,
    /// What other tracing systems wrote.
    pub state: Option<String>,
}

/// The headers for whoever is asked next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Onward {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`.
    pub state: Option<String>,
}

impl TraceContext {
    /// Reads the two headers; `None` where the first is not as it should be.
    #[must_use]
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let (version, id, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = digits::<1>(version)?;
        // A later version may add parts; this one has none to add.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace_id, span) = (digits::<16>(id)?, digits::<8>(span)?);
        if trace_id == [0; 16] || span == [0; 8] {
            return None;
        }
        let [flags] = digits::<1>(flags)?;
        Some(Self {
            trace_id,
            parent: Some(span),
            is_sampled: flags & 1 == 1,
            state: state.and_then(read_state),
        })
    }

    pub(super) fn onward(&self, span: [u8; 8]) -> Onward {
        let (id, span) = (hex::encode(self.trace_id), hex::encode(span));
        let flags = u8::from(self.is_sampled);
        Onward { parent: format!("00-{id}-{span}-{flags:02x}"), state: self.state.clone() }
    }
}

/// Lower-case hexadecimal digits, exactly as many as needed.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if !text.bytes().all(is_lower) {
        return None;
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// A `tracestate`, if every member is a key and a value in the permitted letters.
fn read_state(text: &str) -> Option<String> {
    let members: Vec<_> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let fits = text.len() <= STATE_BYTES_MAX && (1..=STATE_MEMBERS_MAX).contains(&members.len());
    (fits && members.iter().all(|member| is_member(member))).then(|| members.join(","))
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let in_key =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let in_value = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b'=';
    !key.is_empty() && key.bytes().all(in_key) && !value.is_empty() && value.bytes().all(in_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_handed_on_under_a_new_span() {
        let context = TraceContext::read(GOOD, Some("a=1, b@x=2")).unwrap();
        assert!(context.is_sampled);
        let onward = context.onward([1; 8]);
        assert_eq!(onward.parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-0101010101010101-01");
        assert_eq!(onward.state.as_deref(), Some("a=1,b@x=2"));
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!TraceContext::read(&unsampled, None).unwrap().is_sampled);
    }

    #[test]
    fn what_is_not_written_as_it_should_be_is_as_good_as_none() {
        for odd in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        ] {
            assert_eq!(TraceContext::read(odd, None), None, "{odd}");
        }
        let long = format!("a={}", "x".repeat(600));
        for odd in ["", "no member", "A=1", "a=", "=1", "a=b=c", "a=\u{7f}", &long] {
            assert_eq!(TraceContext::read(GOOD, Some(odd)).unwrap().state, None, "{odd}");
        }
    }
}
