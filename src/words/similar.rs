//! "did you mean …?"

/// The longest word that is looked at, in bytes.
const LONGEST: usize = 60;

/// The word that somebody may have meant who wrote `wrong`; of several that are as near, the first. None for what is longer
/// than 60 bytes, as no word of ours is.
#[must_use]
pub fn similar<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // The distance takes the product of both lengths.
    if wrong.len() > LONGEST {
        return None;
    }
    let plain = |word: &str| word.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = plain(wrong);
    let most = (wrong.chars().count() / 3).clamp(1, 3);
    // What is longer or shorter by more is not that near, and may be of any length.
    let is_as_long = |word: &str| word.len() <= 4 * LONGEST && plain(word).chars().count().abs_diff(wanted.chars().count()) <= most;
    let near = words.into_iter().filter(|word| is_as_long(word));
    let scored = near.map(|word| (strsim::damerau_levenshtein(&wanted, &plain(word)), word));
    let (distance, word) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= most && distance < word.chars().count()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_any_length_costs_little() {
        let long = "interval".repeat(1 << 20);
        assert_eq!(similar("intervall", [long.as_str(), "interval"]), Some("interval"));
    }

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let words = ["interval", "env_mode", "cwd", "era", "timeouts", "stdout.noise"];
        for (wrong, wanted) in [
            ("intervall", Some("interval")),
            ("Interval", Some("interval")),
            ("envMode", Some("env_mode")),
            ("env-mode", Some("env_mode")),
            ("timeout", Some("timeouts")),
            ("cdw", Some("cwd")),
            ("stdout.nois", Some("stdout.noise")),
            ("colour", None),
            ("", None),
            ("x", None),
            ("x".repeat(LONGEST + 1).as_str(), None),
        ] {
            assert_eq!(similar(wrong, words), wanted, "{wrong}");
        }
    }
}
