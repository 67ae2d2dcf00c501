//! Where concepts occur in a folded text.
//!
//! **Invariant:** one pass of the automaton, and what it finds is counted into order; memory is bounded because long texts are
//! scanned window by window.

use crate::fold::chars::{ends_sentence, is_unspaced, is_word};
use crate::pattern::{Atom, Book, ConceptId};

/// How many extra steps the end of a sentence counts.
const SENTENCE_STEPS: u32 = 4;
/// How many extra steps the end of a line counts.
const LINE_STEPS: u32 = 2;

/// One occurrence of a concept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) concept: ConceptId,
    /// The step at which it begins: words, unspaced characters and sentence ends are steps.
    pub(crate) from: u32,
    /// The step after its last.
    pub(crate) to: u32,
    /// Its first byte.
    pub(crate) start: u32,
    /// The byte after its last.
    pub(crate) end: u32,
}

/// All occurrences in one window of text, by concept.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Those of one concept stand together, by place.
    occurrences: Vec<Occurrence>,
    /// The concepts that were found, in the order in which they were.
    groups: Vec<Group>,
    /// For each concept the number of its group and one more; zero for one that was not found. Most
    /// concepts are in no text, so that work is only done for those that are.
    group_of: Vec<u16>,
    /// How many words and unspaced characters there are.
    pub(crate) units: u32,
    /// Byte ranges between quotation marks.
    pub(crate) quotes: Vec<(u32, u32)>,
}

/// Where the occurrences of one concept stand in the list.
#[derive(Clone, Copy, Debug)]
struct Group {
    concept: ConceptId,
    from: u32,
    to: u32,
}

impl Scan {
    /// Scans a folded text.
    pub(crate) fn new(book: &Book, text: &str) -> Self {
        let steps = Steps::of(text);
        let mut found = steps.edges(book, text.len());
        book.automata.each(text, |atom, start, end| {
            let atom = &book.atoms[atom];
            if stands_alone(text, start, end, atom) {
                let (from, to) = (steps.at(start), steps.at(end - 1) + 1);
                let (start, end) = (narrow(start), narrow(end));
                let occurrence = |&concept| Occurrence { concept, from, to, start, end };
                found.extend(atom.concepts.iter().map(occurrence));
            }
        });
        let mut scan = Self {
            occurrences: Vec::new(),
            groups: Vec::with_capacity(found.len().min(book.concepts)),
            group_of: vec![0; book.concepts],
            units: steps.units,
            quotes: quotes(text),
        };
        scan.gather(&found);
        scan
    }

    /// Puts the occurrences of each concept together, by place. They are found nearly in order, so that
    /// counting them out is much cheaper than sorting them all.
    fn gather(&mut self, found: &[Occurrence]) {
        for occurrence in found {
            let group = &mut self.group_of[usize::from(occurrence.concept)];
            if *group == 0 {
                self.groups.push(Group { concept: occurrence.concept, from: 0, to: 0 });
                // There are no more groups than concepts, whose numbers have as many bits.
                *group = u16::try_from(self.groups.len()).unwrap_or(u16::MAX);
            }
            self.groups[usize::from(*group) - 1].to += 1;
        }
        let mut next = 0;
        for group in &mut self.groups {
            let count = group.to;
            (group.from, group.to) = (next, next);
            next += count;
        }
        self.occurrences = found.to_vec();
        for occurrence in found {
            let group = usize::from(self.group_of[usize::from(occurrence.concept)]) - 1;
            let place = &mut self.groups[group].to;
            self.occurrences[*place as usize] = *occurrence;
            *place += 1;
        }
        for group in &self.groups {
            let of_one = &mut self.occurrences[group.from as usize..group.to as usize];
            let place = |one: &Occurrence| (one.start, one.end);
            if !of_one.is_sorted_by_key(place) {
                of_one.sort_unstable_by_key(place);
            }
        }
    }

    /// The concepts that occur.
    pub(crate) fn concepts(&self) -> impl Iterator<Item = ConceptId> + '_ {
        self.groups.iter().filter(|group| group.from < group.to).map(|group| group.concept)
    }

    /// The occurrences of a concept, by place.
    pub(crate) fn of(&self, concept: ConceptId) -> &[Occurrence] {
        let group = usize::from(self.group_of[usize::from(concept)]);
        let Some(group) = group.checked_sub(1).map(|at| self.groups[at]) else { return &[] };
        &self.occurrences[group.from as usize..group.to as usize]
    }

    /// Whether a concept occurs.
    pub(crate) fn has(&self, concept: ConceptId) -> bool {
        !self.of(concept).is_empty()
    }

    /// Takes out every occurrence that lies within one of these byte ranges. With `inner`, one that
    /// fills its range stays.
    pub(crate) fn remove_within(&mut self, ranges: &mut [(u32, u32)], inner: bool) {
        if ranges.is_empty() {
            return;
        }
        ranges.sort_unstable();
        // The widest range that begins at or before each range's start.
        let mut widest = (0, 0);
        let reach: Vec<(u32, (u32, u32))> = ranges
            .iter()
            .map(|&(start, end)| {
                if end > widest.1 {
                    widest = (start, end);
                }
                (start, widest)
            })
            .collect();
        let stays = |occurrence: &Occurrence| {
            let after = reach.partition_point(|&(start, _)| start <= occurrence.start);
            let Some(&(_, (start, end))) = after.checked_sub(1).and_then(|at| reach.get(at)) else {
                return true;
            };
            let inside = occurrence.end <= end && occurrence.end > occurrence.start;
            let fills = occurrence.start == start && occurrence.end == end;
            !inside || (inner && fills)
        };
        for group in &mut self.groups {
            let mut to = group.from;
            for at in group.from..group.to {
                let occurrence = self.occurrences[at as usize];
                if stays(&occurrence) {
                    self.occurrences[to as usize] = occurrence;
                    to += 1;
                }
            }
            group.to = to;
        }
    }
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Whether the atom's edges are as it wants them: no letter of the same word goes on, and nothing
/// stands beside it that makes another word of it.
fn stands_alone(text: &str, start: usize, end: usize, atom: &Atom) -> bool {
    let before = text[..start].chars().next_back();
    let after = text[end..].chars().next();
    let unwanted = |c: Option<char>, word: bool, guard: &str| {
        c.is_some_and(|c| (word && is_word(c)) || guard.contains(c))
    };
    !unwanted(before, atom.left, &atom.not_after) && !unwanted(after, atom.right, &atom.not_before)
}

/// Byte positions of words and unspaced characters, numbered with room for sentence ends.
struct Steps {
    /// (first byte, step), by place.
    list: Vec<(u32, u32)>,
    /// Indexes into `list` of those that begin a sentence.
    sentences: Vec<u32>,
    units: u32,
}

impl Steps {
    fn of(text: &str) -> Self {
        let mut steps =
            Self { list: Vec::with_capacity(text.len() / 4 + 1), sentences: vec![], units: 0 };
        let mut step = 0u32;
        let (mut in_word, mut fresh) = (false, true);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if is_word(c) || is_unspaced(c) {
                if !in_word || is_unspaced(c) {
                    if std::mem::take(&mut fresh) {
                        steps.sentences.push(narrow(steps.list.len()));
                    }
                    steps.list.push((narrow(at), step));
                    steps.units += 1;
                    step += 1;
                }
                in_word = !is_unspaced(c);
                continue;
            }
            let next = chars.peek().map(|&(_, next)| next);
            if c == '\'' && in_word && next.is_some_and(is_word) {
                continue;
            }
            in_word = false;
            if !fresh && breaks_sentence(c, next) {
                step += if c == '\n' { LINE_STEPS } else { SENTENCE_STEPS };
                fresh = true;
            }
        }
        steps
    }

    /// The step of the word that holds this byte, or of the one before it.
    fn at(&self, byte: usize) -> u32 {
        let after = self.list.partition_point(|&(start, _)| start as usize <= byte);
        self.list.get(after.saturating_sub(1)).map_or(0, |&(_, step)| step)
    }

    /// The edges of sentences, in a list with room for what a text of this many bytes will hold.
    fn edges(&self, book: &Book, bytes: usize) -> Vec<Occurrence> {
        let mut occurrences = Vec::with_capacity(64 + bytes / 2);
        for &at in &self.sentences {
            let (start, from) = self.list[at as usize];
            occurrences.extend(edge(&book.starts, start, from));
        }
        let afters = self.sentences.iter().skip(1).map(|&at| at as usize);
        for after in afters.chain(std::iter::once(self.list.len())) {
            if let Some(&(_, last)) = after.checked_sub(1).and_then(|at| self.list.get(at)) {
                let byte = self.list.get(after).map_or(narrow(bytes), |&(start, _)| start);
                occurrences.extend(edge(&book.ends, byte, last + 1));
            }
        }
        occurrences
    }
}

/// An occurrence without extent.
fn edge(concepts: &[ConceptId], byte: u32, step: u32) -> impl Iterator<Item = Occurrence> + '_ {
    let (from, to, start, end) = (step, step, byte, byte);
    concepts.iter().map(move |&concept| Occurrence { concept, from, to, start, end })
}

/// Whether the sentence ends here: a full stop inside `3.5` or `example.com` does not end it.
fn breaks_sentence(c: char, next: Option<char>) -> bool {
    match c {
        '.' | '!' | '?' | ';' => next.is_none_or(|next| !is_word(next)),
        ':' => next.is_none_or(char::is_whitespace),
        '(' | '"' | '「' | '『' => true,
        _ => ends_sentence(c),
    }
}

/// The byte ranges between quotation marks.
fn quotes(text: &str) -> Vec<(u32, u32)> {
    let mut ranges = Vec::new();
    let mut open: Option<(char, usize)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, next)| next);
        match open {
            Some((close, start)) if c == close && closes(c, next) => {
                ranges.push((narrow(start), narrow(at)));
                open = None;
            }
            None => open = opens(c, before, next).map(|close| (close, at + c.len_utf8())),
            Some(_) => {}
        }
        before = c;
    }
    ranges
}

fn opens(c: char, before: char, next: char) -> Option<char> {
    Some(match c {
        '"' => '"',
        '「' => '」',
        '『' => '』',
        '«' => '»',
        '\'' if !is_word(before) && !next.is_whitespace() => '\'',
        _ => return None,
    })
}

fn closes(c: char, next: char) -> bool {
    c != '\'' || !is_word(next)
}
