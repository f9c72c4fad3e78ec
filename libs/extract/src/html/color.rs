//! Colours of text and background, as far as it takes to see that they are the same.

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// What a declaration of a colour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Solid(Rgb),
    Transparent,
    /// An image, a gradient, or what is not understood.
    Unknown,
}

const NAMES: &[(&str, Rgb)] = &[
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("red", [255, 0, 0]),
    ("green", [0, 128, 0]),
    ("blue", [0, 0, 255]),
    ("gray", [128, 128, 128]),
    ("grey", [128, 128, 128]),
    ("silver", [192, 192, 192]),
    ("lightgray", [211, 211, 211]),
    ("lightgrey", [211, 211, 211]),
    ("whitesmoke", [245, 245, 245]),
    ("snow", [255, 250, 250]),
    ("ivory", [255, 255, 240]),
    ("navy", [0, 0, 128]),
    ("yellow", [255, 255, 0]),
    ("orange", [255, 165, 0]),
    ("purple", [128, 0, 128]),
    ("teal", [0, 128, 128]),
];

/// Colours of text that is nearly not there: as opaque as this, of 1.
const OPACITY_MIN: f32 = 0.05;

impl Color {
    /// Reads a value such as `#fff`, `white` or `rgb(255, 255, 255)`.
    pub(super) fn parse(value: &str) -> Self {
        let value = value.trim().to_ascii_lowercase();
        if let Some(digits) = value.strip_prefix('#') {
            return hex(digits);
        }
        if let Some(arguments) = value.strip_prefix("rgba").or_else(|| value.strip_prefix("rgb")) {
            return rgb(arguments);
        }
        if value == "transparent" {
            return Self::Transparent;
        }
        NAMES.iter().find(|(name, _)| *name == value).map_or(Self::Unknown, |(_, rgb)| Self::Solid(*rgb))
    }

    /// Reads the first colour of a `background`, which may have further values.
    pub(super) fn parse_background(value: &str) -> Self {
        if value.contains("url(") || value.contains("gradient(") {
            return Self::Unknown;
        }
        let whole = Self::parse(value);
        if whole != Self::Unknown {
            return whole;
        }
        if value.trim().eq_ignore_ascii_case("none") {
            return Self::Transparent;
        }
        let words = value.split_ascii_whitespace().take(8).map(Self::parse);
        words.into_iter().find(|color| *color != Self::Unknown).unwrap_or(Self::Unknown)
    }
}

/// Whether text of one colour cannot be read on the other.
pub(super) fn looks_same(text: Rgb, background: Rgb) -> bool {
    text.iter().zip(background).all(|(a, b)| a.abs_diff(b) <= 6)
}

fn hex(digits: &str) -> Color {
    let value = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Option<Vec<u8>> = digits.bytes().take(9).map(value).collect();
    match digits.as_deref() {
        Some([r, g, b]) => Color::Solid([r * 17, g * 17, b * 17]),
        Some([r, g, b, a]) => {
            if *a == 0 {
                Color::Transparent
            } else {
                Color::Solid([r * 17, g * 17, b * 17])
            }
        }
        Some([r, s, g, t, b, u]) => Color::Solid([r * 16 + s, g * 16 + t, b * 16 + u]),
        Some([r, s, g, t, b, u, a, _]) => {
            if *a == 0 {
                Color::Transparent
            } else {
                Color::Solid([r * 16 + s, g * 16 + t, b * 16 + u])
            }
        }
        _ => Color::Unknown,
    }
}

fn rgb(arguments: &str) -> Color {
    let arguments = arguments.trim().trim_start_matches('(').trim_end_matches(')');
    let mut values = arguments.split([',', ' ', '/']).filter(|value| !value.is_empty()).map(|value| {
        let percent = value.strip_suffix('%');
        let number: f32 = percent.unwrap_or(value).trim().parse().unwrap_or(f32::NAN);
        if percent.is_some() { number * 2.55 } else { number }
    });
    let mut octet = || {
        let value = values.next().filter(|value| value.is_finite())?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to an octet")]
        Some(value.clamp(0.0, 255.0) as u8)
    };
    let (Some(r), Some(g), Some(b)) = (octet(), octet(), octet()) else { return Color::Unknown };
    match values.next() {
        Some(alpha) if alpha <= OPACITY_MIN => Color::Transparent,
        _ => Color::Solid([r, g, b]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_of_a_colour_are_one() {
        for white in
            ["#fff", "#FFFFFF", "white", "rgb(255,255,255)", "rgb(100% 100% 100%)", "rgba(255,255,255,.9)"]
        {
            assert_eq!(Color::parse(white), Color::Solid([255; 3]), "{white}");
        }
        assert_eq!(Color::parse("rgba(0,0,0,0)"), Color::Transparent);
        assert_eq!(Color::parse("#00000000"), Color::Transparent);
        assert_eq!(Color::parse("var(--x)"), Color::Unknown);
        assert_eq!(Color::parse_background("#ffffff none repeat"), Color::Solid([255; 3]));
        assert_eq!(Color::parse_background("url(x) white"), Color::Unknown);
    }
}
