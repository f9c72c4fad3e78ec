//! `style` attributes: declarations that say how something looks, and load nothing.

/// Properties that are left out: what they place may cover what is not theirs.
const PROPERTIES: [&str; 4] = ["position", "behavior", "content", "-moz-binding"];

/// What no declaration may have, in lower case: functions that load or look up something, and what hides them.
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

/// The harmless declarations of a `style` attribute.
pub(super) fn harmless(style: &str) -> String {
    style
        .split(';')
        .map(str::trim)
        .filter(|declaration| is_harmless(declaration))
        .collect::<Vec<_>>()
        .join(";")
}

fn is_harmless(declaration: &str) -> bool {
    let declaration = declaration.to_ascii_lowercase();
    let Some((property, _)) = declaration.split_once(':') else { return false };
    let property = property.trim_end();
    let is_property = property.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-')
        && !property.starts_with("--")
        && property.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    is_property
        && !PROPERTIES.contains(&property)
        && FORBIDDEN.iter().all(|forbidden| !declaration.contains(forbidden))
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
