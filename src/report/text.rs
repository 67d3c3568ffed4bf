//! Making text from a machine or a file fit to be shown: no control or direction characters, bounded length.
//! Escaping for HTML or SVG is a separate step of the writer.

/// Longest single value shown, in characters.
pub const SHORT: usize = 120;
/// Longest sentence or path shown, in characters.
pub const LONG: usize = 600;

/// `text` with every invisible or direction-changing character made visible and at most `max` characters.
/// C0 controls become their control pictures (ESC → ␛); everything else of that kind becomes `<U+202E>`.
pub fn clean(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max * 4));
    for (shown, c) in text.chars().enumerate() {
        if shown == max {
            out.push('…');
            break;
        }
        match c {
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('␀')),
            '\u{7f}' => out.push('␡'),
            c if is_invisible(c) => out.push_str(&format!("<U+{:04X}>", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// C1 controls, direction marks and overrides, zero-width and tag characters, variation selectors' kin.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Columns `text` takes on a terminal.
pub fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// `text` cut to `width` terminal columns, with an ellipsis if something was cut.
pub fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let mut out = String::new();
    for c in text.chars() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// `text` in lines of at most `width` terminal columns, broken at spaces where there are any; all but the first
/// begin with `indent` spaces. What does not fit into `most` lines is cut, with an ellipsis.
pub fn wrap(text: &str, width: usize, indent: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let lead = if lines.is_empty() { 0 } else { indent.min(width / 2) };
        let room = width.saturating_sub(lead).max(2);
        let lead = " ".repeat(lead);
        if columns(rest) <= room || lines.len() + 1 == most {
            lines.push(lead + &fit(rest, room));
            break;
        }
        let end = break_at(rest, room);
        lines.push(lead + rest[..end].trim_end());
        rest = rest[end..].trim_start();
    }
    lines
}

/// Where the line ends: at the last space within `room` columns, else in the middle of a word.
fn break_at(text: &str, room: usize) -> usize {
    let mut used = 0;
    let (mut space, mut end) = (None, 0);
    for (at, c) in text.char_indices() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if c == ' ' && text[..at].chars().any(|c| c != ' ') {
            space = Some(at);
        }
        if used > room {
            break;
        }
        end = at + c.len_utf8();
    }
    space.filter(|s| *s > 0).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_hangs_the_rest() {
        assert_eq!(wrap("one two three", 20, 2, 9), ["one two three"]);
        assert_eq!(wrap("one two three", 8, 2, 9), ["one two", "  three"]);
        assert_eq!(wrap("  → one two", 8, 4, 9), ["  → one", "    two"], "a leading indent is no place to break");
        assert_eq!(wrap("onetwothree", 5, 2, 9), ["onetw", "  oth", "  ree"]);
        assert_eq!(wrap("验收不通过", 5, 0, 9), ["验收", "不通", "过"]);
        assert_eq!(wrap("a b c d e f", 3, 0, 2), ["a b", "c …"]);
        assert_eq!(wrap("", 10, 0, 9), Vec::<String>::new());
        for width in 0..30 {
            for line in wrap("some words and averyverylongone 验收不通过", width, 4, 9) {
                assert!(columns(&line) <= width.max(4), "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn controls_and_direction_marks_become_visible() {
        assert_eq!(clean("a\u{1b}[31mb\u{7f}", 99), "a␛[31mb␡");
        assert_eq!(clean("x\u{202e}y\u{200b}\u{feff}", 99), "x<U+202E>y<U+200B><U+FEFF>");
        assert_eq!(clean("line\nbreak\u{85}", 99), "line break<U+0085>");
        assert_eq!(clean("GPU 显卡 é", 99), "GPU 显卡 é");
    }

    #[test]
    fn length_is_bounded() {
        let long = "é".repeat(10_000);
        assert_eq!(clean(&long, SHORT).chars().count(), SHORT + 1);
        assert!(clean(&long, SHORT).ends_with('…'));
        assert_eq!(clean("abc", 3), "abc");
    }

    #[test]
    fn fits_wide_characters_into_columns() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(columns(&fit("验收不通过验收", 7)), 7);
    }
}
