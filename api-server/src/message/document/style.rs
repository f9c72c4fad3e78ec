//! `style` attributes: declarations that say how something looks, and load nothing.

/// Properties that are left out: what they place may cover what is not theirs.
const PROPERTIES: [&str; 4] = ["position", "behavior", "content", "-moz-binding"];

/// What no value may have, in lower case: functions that load or look up something, and what hides them.
const FORBIDDEN: [&str; 14] = [
    "url",
    "image",
    "src",
    "attr(",
    "var(",
    "env(",
    "element(",
    "expression",
    "script",
    "\\",
    "/*",
    "@",
    "{",
    "<",
];

/// Words of a `background` that are no colours, without those that have a hyphen.
const BACKGROUND_WORDS: [&str; 19] = [
    "auto", "bottom", "center", "contain", "cover", "fixed", "inherit", "initial", "left", "local", "none",
    "repeat", "revert", "right", "round", "scroll", "space", "top", "unset",
];

/// The harmless declarations of a `style` attribute. Of a `background` that loads an image its colour stays: text was
/// given a colour that can be read on it.
pub(super) fn harmless(style: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut rest = style;
    while !rest.is_empty() {
        let mut len = rest.find(';').unwrap_or(rest.len());
        let declaration = rest[..len].trim();
        if is_harmless(declaration) {
            kept.push(declaration.to_owned());
        } else if let Some(name_len) = background_name_len(&rest[..len]) {
            let value = &rest[name_len..];
            let value = &value[..background_len(value)];
            len = name_len + value.len();
            kept.extend(background_color(value).filter(|color| is_harmless(color)));
        }
        rest = rest.get(len + 1..).unwrap_or_default();
    }
    kept.join(";")
}

fn is_harmless(declaration: &str) -> bool {
    let declaration = declaration.to_ascii_lowercase();
    let Some((property, value)) = declaration.split_once(':') else { return false };
    let property = property.trim_end();
    let is_property = property.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-')
        && !property.starts_with("--")
        && property.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    is_property
        && !PROPERTIES.contains(&property)
        && FORBIDDEN.iter().all(|forbidden| !value.contains(forbidden))
}

/// The length of the name of the property, with its colon, if that is `background`.
fn background_name_len(declaration: &str) -> Option<usize> {
    let (property, _) = declaration.split_once(':')?;
    property.trim().eq_ignore_ascii_case("background").then_some(property.len() + 1)
}

/// The length of a value up to its `;`, which may also be in a URL.
fn background_len(value: &str) -> usize {
    let mut depth = 0_usize;
    let end = value.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b';' && depth == 0
    });
    end.unwrap_or(value.len())
}

/// The declaration of the colour of a `background`.
fn background_color(value: &str) -> Option<String> {
    let mut depth = 0_usize;
    let words = value.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c.is_whitespace() || matches!(c, ',' | '!'))
    });
    let color = words.into_iter().filter(|word| is_color(&word.to_ascii_lowercase())).last()?;
    let importance = if value.to_ascii_lowercase().contains("!important") { "!important" } else { "" };
    Some(format!("background-color:{color}{importance}"))
}

/// Whether a word of a `background`, in lower case, is a colour.
fn is_color(word: &str) -> bool {
    if let Some(digits) = word.strip_prefix('#') {
        return digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    match word.split_once('(') {
        Some((function, arguments)) => {
            ["rgb", "rgba", "hsl", "hsla"].contains(&function)
                && arguments.strip_suffix(')').is_some_and(|list| {
                    list.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || ".,%/+-".contains(c))
                })
        }
        None => {
            word.bytes().all(|byte| byte.is_ascii_alphabetic())
                && !word.is_empty()
                && word != "important"
                && !BACKGROUND_WORDS.contains(&word)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_says_how_something_looks() {
        let style =
            "color:#333; Font-Family: Arial, 'Segoe UI' ;padding:0 4px!important;background-color:rgb(1,2,3)";
        assert_eq!(
            harmless(style),
            "color:#333;Font-Family: Arial, 'Segoe UI';padding:0 4px!important;background-color:rgb(1,2,3)"
        );
        let gradient = "background-image:linear-gradient(#101820, #203040)";
        assert_eq!(harmless(gradient), gradient);
    }

    #[test]
    fn keeps_the_colour_of_a_background_with_an_image() {
        for (style, kept) in [
            ("background:#101820 url(https://evil.example/x) no-repeat", "background-color:#101820"),
            (
                "Background : url('x') center / cover #101820 ; color:#fff",
                "background-color:#101820;color:#fff",
            ),
            ("background:url(data:image/png;base64,AA==) black;margin:0", "background-color:black;margin:0"),
            ("background:rgb(16, 24, 32) url(x)!important", "background-color:rgb(16, 24, 32)!important"),
            ("background:url(a), url(b) rgba(16,24,32,.5)", "background-color:rgba(16,24,32,.5)"),
            ("background:navy image-set('x' 1x)", "background-color:navy"),
            ("background:url(x) no-repeat center", ""),
            ("background:url(x;position:fixed;color:red", ""),
            ("background:rgb(url(x)) #zzz", ""),
        ] {
            assert_eq!(harmless(style), kept, "{style}");
        }
    }

    #[test]
    fn leaves_out_what_loads_or_hides_something() {
        for style in [
            "background:url(https://evil.example/x)",
            "background: URL('https://evil.example/x')",
            "background:u\\72l(https://evil.example/x)",
            "background:u/**/rl(x)",
            "background-image:image-set('https://evil.example/x' 1x)",
            "list-style:cross-fade(image(x))",
            "position:fixed",
            "POSITION : absolute",
            "--x:url(y)",
            "color:var(--x)",
            "width:expression(alert(1))",
            "behavior:x",
            "-moz-binding:x",
            "content:attr(href)",
            "@import 'x'",
            "}body{color:red",
            "color",
            ":red",
        ] {
            assert_eq!(harmless(style), "", "{style}");
        }
    }
}
