//! Patterns of `--only` and `--skip`.

/// True if all of `text` matches `pattern`: `*` is any text, `?` one character, everything else itself (case
/// ids are full of brackets). Takes at most pattern × text steps.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn brackets_are_themselves() {
        let id = "gemm[n=2048,type=fp32]@host:0";
        for pattern in ["gemm*", "*type=fp32]*", "*", "gemm[n=????,*]@host:0", id] {
            assert!(matches(pattern, id), "{pattern}");
        }
        for pattern in ["", "gemm", "gemm[n=?]*", "*host:1", "**x"] {
            assert!(!matches(pattern, id), "{pattern}");
        }
        assert!(matches("", "") && matches("***", ""));
    }

    #[test]
    fn many_stars_stay_cheap() {
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49).repeat(2).replace("aa", "ab")));
    }
}
