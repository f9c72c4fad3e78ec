//! Declarations of CSS that decide whether text is seen, and how much it stands out. Of colours it matters whether
//! that of the text is that behind it.

use crate::bounds::{DECLARATIONS_MAX, prefix};

/// A size of type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    /// Pixels.
    Px(f32),
    /// Times that of the element around it.
    Times(f32),
}

/// What declarations say; nothing where they are silent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Style {
    /// `display: none`, or another value.
    pub(super) displayed: Option<bool>,
    /// `display: inline…`, or a block.
    pub(super) inline: Option<bool>,
    /// `visibility`.
    pub(super) visible: Option<bool>,
    /// Whether there is opacity, and a size to it, within the page.
    pub(super) opaque: Option<bool>,
    pub(super) within_page: Option<bool>,
    pub(super) zero_height: Option<bool>,
    pub(super) zero_width: Option<bool>,
    /// `overflow: hidden`.
    pub(super) clips: Option<bool>,
    /// `position: absolute` or `fixed`.
    pub(super) positioned: Option<bool>,
    /// `left`, `top`, `right` or `bottom` far outside.
    pub(super) far_away: Option<bool>,
    pub(super) size: Option<Size>,
    pub(super) color: Option<Color>,
    pub(super) background: Option<Color>,
    pub(super) bold: Option<bool>,
    /// `letter-spacing`.
    pub(super) spaced: Option<bool>,
    pub(super) keeps_lines: Option<bool>,
}

/// Declarations, and those that are `!important`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Declarations {
    pub(super) normal: Style,
    pub(super) important: Style,
}

impl Style {
    /// What both say; the other has the last word.
    pub(super) fn then(self, other: Self) -> Self {
        Self {
            displayed: other.displayed.or(self.displayed),
            inline: other.inline.or(self.inline),
            visible: other.visible.or(self.visible),
            opaque: other.opaque.or(self.opaque),
            within_page: other.within_page.or(self.within_page),
            zero_height: other.zero_height.or(self.zero_height),
            zero_width: other.zero_width.or(self.zero_width),
            clips: other.clips.or(self.clips),
            positioned: other.positioned.or(self.positioned),
            far_away: other.far_away.or(self.far_away),
            size: other.size.or(self.size),
            color: other.color.or(self.color),
            background: other.background.or(self.background),
            bold: other.bold.or(self.bold),
            spaced: other.spaced.or(self.spaced),
            keeps_lines: other.keeps_lines.or(self.keeps_lines),
        }
    }

    /// Whether the element and all in it is not seen. Visibility, size and colour are inherited, and apart.
    pub(super) fn hides(&self) -> bool {
        let clipped =
            self.clips == Some(true) && (self.zero_height == Some(true) || self.zero_width == Some(true));
        let away = self.positioned == Some(true) && self.far_away == Some(true);
        self.displayed == Some(false)
            || self.opaque == Some(false)
            || self.within_page == Some(false)
            || clipped
            || away
    }

    fn declare(&mut self, property: &str, value: &str) {
        match property {
            "display" => {
                self.displayed = Some(value != "none");
                self.inline = Some(value.starts_with("inline"));
            }
            "visibility" => self.visible = Some(value == "visible"),
            "opacity" => self.opaque = number(value).map(|opacity| opacity > 0.05),
            "filter" if value.contains("opacity(0") && !value.contains("opacity(0.") => {
                self.opaque = Some(false);
            }
            "font-size" => self.size = size(value).or(self.size),
            "font" => self.declare_font(value),
            "color" => self.color = Some(Color::parse(value)),
            "background" => self.background = Some(Color::parse_background(value)),
            "background-color" => self.background = Some(Color::parse(value)),
            "background-image" if value != "none" => self.background = Some(Color::Unknown),
            "max-height" | "height" => {
                self.zero_height = pixels(value).map(|height| height <= 1.0).or(self.zero_height);
            }
            "max-width" | "width" => {
                self.zero_width = pixels(value).map(|width| width <= 1.0).or(self.zero_width);
            }
            "overflow" => self.clips = Some(value == "hidden" || value == "clip"),
            "position" => self.positioned = Some(value == "absolute" || value == "fixed"),
            "left" | "top" | "right" | "bottom" | "margin-left" | "margin-top" => {
                let away = pixels(value).is_some_and(|offset| offset <= -900.0);
                if away && property.starts_with("margin") {
                    self.within_page = Some(false);
                } else if away {
                    self.far_away = Some(true);
                }
            }
            "text-indent" => {
                self.within_page = pixels(value).map(|indent| indent.abs() < 900.0).or(self.within_page);
            }
            "clip" if is_nothing(value) => self.within_page = Some(false),
            "clip-path" if value == "inset(100%)" || value == "inset(50%)" || value == "circle(0)" => {
                self.within_page = Some(false);
            }
            "transform" if value.contains("scale(0)") || value.contains("scale(0,") => {
                self.within_page = Some(false);
            }
            "font-weight" => {
                let weight: Option<f32> = value.parse().ok();
                self.bold = Some(weight.map_or(value.starts_with("bold"), |weight| weight >= 600.0));
            }
            "letter-spacing" => {
                self.spaced = Some(size(value).is_some_and(|gap| match gap {
                    Size::Px(gap) => gap >= 2.0,
                    Size::Times(gap) => gap >= 0.1,
                }));
            }
            "white-space" => self.keeps_lines = Some(value.starts_with("pre")),
            _ => {}
        }
    }

    fn declare_font(&mut self, value: &str) {
        for word in value.split_ascii_whitespace().take(6) {
            if word.starts_with("bold") {
                self.bold = Some(true);
            }
            let first = word.split('/').next().unwrap_or(word);
            if first.contains(|c: char| c.is_ascii_alphabetic() || c == '%') || first == "0" {
                self.size = size(first).or(self.size);
            }
        }
    }
}

impl Declarations {
    /// Reads declarations such as `color: #fff; display: none !important`.
    pub(super) fn parse(text: &str) -> Self {
        let mut declarations = Self::default();
        for declaration in prefix(text, DECLARATIONS_MAX).split(';') {
            let Some((property, value)) = declaration.split_once(':') else { continue };
            let property = property.trim().to_ascii_lowercase();
            let value = value.trim().to_ascii_lowercase();
            match value.split_once('!') {
                Some((value, _)) => declarations.important.declare(&property, value.trim_end()),
                None => declarations.normal.declare(&property, &value),
            }
        }
        declarations
    }
}

fn number(value: &str) -> Option<f32> {
    let (value, divisor) = value.strip_suffix('%').map_or((value, 1.0), |value| (value, 100.0));
    value.trim().parse::<f32>().ok().filter(|value| value.is_finite()).map(|value| value / divisor)
}

fn size(value: &str) -> Option<Size> {
    let end =
        value.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(value.len());
    let Ok(number) = value[..end].parse::<f32>() else {
        return match value {
            "xx-small" | "x-small" | "small" => Some(Size::Px(12.0)),
            "medium" => Some(Size::Px(16.0)),
            "large" => Some(Size::Px(18.0)),
            "x-large" | "xx-large" | "xxx-large" => Some(Size::Px(28.0)),
            "larger" => Some(Size::Times(1.2)),
            "smaller" => Some(Size::Times(0.8)),
            _ => None,
        };
    };
    match value[end..].trim() {
        "px" | "" => Some(Size::Px(number)),
        "pt" => Some(Size::Px(number * 4.0 / 3.0)),
        "em" => Some(Size::Times(number)),
        "rem" => Some(Size::Px(number * 16.0)),
        "%" => Some(Size::Times(number / 100.0)),
        "vw" | "vh" => Some(Size::Px(number * 6.0)),
        _ => None,
    }
}

fn pixels(value: &str) -> Option<f32> {
    match size(value)? {
        Size::Px(pixels) => Some(pixels),
        Size::Times(times) if value.ends_with('%') => {
            if times == 0.0 {
                Some(0.0)
            } else {
                None
            }
        }
        Size::Times(times) => Some(times * 16.0),
    }
}

/// Whether a `clip` leaves nothing or a pixel.
fn is_nothing(value: &str) -> bool {
    let Some(sides) = value.strip_prefix("rect(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let sides = sides.split([',', ' ']).filter(|side| !side.is_empty());
    sides.into_iter().all(|side| pixels(side).is_some_and(|side| side <= 1.0))
}

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

    fn hides(text: &str) -> bool {
        let declarations = Declarations::parse(text);
        declarations.normal.then(declarations.important).hides()
    }

    #[test]
    fn hides_what_no_reader_sees() {
        for hidden in [
            "display:none",
            "color:red; DISPLAY : NONE !important",
            "opacity:0",
            "opacity:0.0",
            "max-height:0;overflow:hidden",
            "position:absolute;left:-9999px",
            "text-indent:-9999px",
            "position:absolute;clip:rect(0 0 0 0)",
            "transform:scale(0)",
        ] {
            assert!(hides(hidden), "{hidden}");
        }
    }

    #[test]
    fn shows_what_a_reader_sees() {
        for shown in
            ["display:block", "opacity:0.9", "max-height:0", "height:1px", "position:absolute;left:-9px"]
        {
            assert!(!hides(shown), "{shown}");
        }
    }

    #[test]
    fn reads_sizes() {
        assert_eq!(size("0"), Some(Size::Px(0.0)));
        assert_eq!(size("24pt"), Some(Size::Px(32.0)));
        assert_eq!(size("1.5em"), Some(Size::Times(1.5)));
        assert_eq!(Declarations::parse("font: bold 0/0 Arial").normal.size, Some(Size::Px(0.0)));
    }

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
