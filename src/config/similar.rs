//! "did you mean …?"

/// The word that somebody may have meant who wrote `wrong`.
pub(super) fn similar<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // Nothing of ours is so long, and the distance takes the product of both lengths.
    if wrong.len() > 60 {
        return None;
    }
    let plain = |word: &str| word.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = plain(wrong);
    let scored = words.into_iter().map(|word| (strsim::damerau_levenshtein(&wanted, &plain(word)), word));
    let (distance, word) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= (wrong.chars().count() / 3).clamp(1, 3) && distance < word.chars().count()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(similar(wrong, words), wanted, "{wrong}");
        }
    }
}
