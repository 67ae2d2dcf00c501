//! English verb forms, so that a data file lists each verb once.

/// The forms of one verb or verb phrase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forms {
    /// `kill`
    pub(crate) base: String,
    /// `kills`
    pub(crate) third: String,
    /// `killing`
    pub(crate) ing: String,
    /// `killed`; irregular verbs may have two.
    pub(crate) past: Vec<String>,
}

/// Inflects the first word of a phrase; `shoot>shot` or `take out>took,taken` gives irregular pasts.
pub(crate) fn inflect(entry: &str) -> Forms {
    let (phrase, irregular) = entry.split_once('>').unwrap_or((entry, ""));
    let (verb, rest) = match phrase.split_once(' ') {
        Some((verb, rest)) => (verb, format!(" {rest}")),
        None => (phrase, String::new()),
    };
    let past: Vec<String> = if irregular.is_empty() {
        vec![past(verb)]
    } else {
        irregular.split(',').map(|form| form.trim().to_owned()).collect()
    };
    Forms {
        base: phrase.to_owned(),
        third: format!("{}{rest}", third(verb)),
        ing: format!("{}{rest}", ing(verb)),
        past: past.iter().map(|form| format!("{form}{rest}")).collect(),
    }
}

fn third(verb: &str) -> String {
    if let Some(stem) = strip_consonant_y(verb) {
        format!("{stem}ies")
    } else if ["s", "x", "z", "ch", "sh", "o"].iter().any(|end| verb.ends_with(end)) {
        format!("{verb}es")
    } else {
        format!("{verb}s")
    }
}

fn ing(verb: &str) -> String {
    if let Some(stem) = verb.strip_suffix("ie") {
        format!("{stem}ying")
    } else if let Some(stem) =
        verb.strip_suffix('e').filter(|stem| !stem.ends_with(['e', 'o', 'y']))
    {
        format!("{stem}ing")
    } else {
        format!("{}ing", doubled(verb))
    }
}

fn past(verb: &str) -> String {
    if let Some(stem) = strip_consonant_y(verb) {
        format!("{stem}ied")
    } else if verb.ends_with('e') {
        format!("{verb}d")
    } else {
        format!("{}ed", doubled(verb))
    }
}

fn strip_consonant_y(verb: &str) -> Option<&str> {
    verb.strip_suffix('y').filter(|stem| !stem.ends_with(is_vowel))
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// Doubles the last consonant of a short verb such as `stab`.
fn doubled(verb: &str) -> String {
    let letters: Vec<char> = verb.chars().collect();
    let one_vowel = letters.iter().filter(|&&c| is_vowel(c)).count() == 1;
    match letters.as_slice() {
        [.., before, vowel, last]
            if one_vowel
                && !is_vowel(*before)
                && is_vowel(*vowel)
                && !matches!(last, 'w' | 'x' | 'y')
                && !is_vowel(*last) =>
        {
            format!("{verb}{last}")
        }
        _ => verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_take_their_forms() {
        for (entry, third, ing, past) in [
            ("kill", "kills", "killing", "killed"),
            ("stab", "stabs", "stabbing", "stabbed"),
            ("poison", "poisons", "poisoning", "poisoned"),
            ("strangle", "strangles", "strangling", "strangled"),
            ("destroy", "destroys", "destroying", "destroyed"),
            ("bury", "buries", "burying", "buried"),
            ("smash", "smashes", "smashing", "smashed"),
            ("shoot>shot", "shoots", "shooting", "shot"),
            ("take out>took,taken", "takes out", "taking out", "took out"),
            ("die", "dies", "dying", "died"),
            ("beat>beat,beaten", "beats", "beating", "beat"),
        ] {
            let forms = inflect(entry);
            assert_eq!(
                (forms.third.as_str(), forms.ing.as_str(), forms.past[0].as_str()),
                (third, ing, past)
            );
        }
    }
}
