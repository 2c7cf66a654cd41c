//! The chart of a run: a row for each scenario and size, a column for each figure, and a bar for each subject.

use super::{
    figure::TIME,
    subject::Subject,
    summary::{Group, Row},
};

/// The figures that have a column.
const COLUMNS: [(&str, &str); 3] = [
    (TIME, "time"),
    ("CPU of the controllers", "CPU of the controllers"),
    ("CPU of the API server", "CPU of the API server"),
];
/// The subjects that have a bar; the pods alone have no controllers.
const SUBJECTS: [(Subject, &str); 2] = [(Subject::Catena, "#2f6f9f"), (Subject::Native, "#b8b8b8")];

const TITLES: usize = 150;
const COLUMN: usize = 250;
/// The part of a column that its longest bar takes; the rest is for the number.
const LONGEST: f64 = 170.0;
const HEADER: usize = 56;
const BAR: usize = 12;
const ROW: usize = 36;

/// The chart as SVG. A bar is a median, and the line on it reaches from the least to the most.
pub fn svg(groups: &[Group]) -> String {
    let (width, height) = (TITLES + COLUMN * COLUMNS.len(), HEADER + ROW * groups.len() + 8);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, (subject, colour)) in SUBJECTS.iter().enumerate() {
        let x = 8 + number * 90;
        text += &bar(x, 10, 10.0, colour);
        text += &label(place(x + 14), 20, "start", subject.label());
    }
    for (number, group) in groups.iter().enumerate() {
        text += &label(place(TITLES - 8), HEADER + number * ROW + BAR + 4, "end", &group.title());
    }
    for (number, (name, title)) in COLUMNS.iter().enumerate() {
        let x = TITLES + number * COLUMN;
        text += &label(place(x), HEADER - 12, "start", title);
        text += &column(groups, name, x);
    }
    text + "</svg>\n"
}

fn column(groups: &[Group], name: &str, x: usize) -> String {
    let rows: Vec<Option<&Row>> = groups.iter().map(|group| group.row(name)).collect();
    let spreads = rows.iter().flatten().flat_map(|row| row.spreads.values());
    let most = spreads.map(|spread| spread.max).fold(f64::MIN_POSITIVE, f64::max);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (line, (subject, colour)) in SUBJECTS.iter().enumerate() {
            let Some((row, spread)) = row.and_then(|row| Some((row, row.spreads.get(subject)?))) else {
                continue;
            };
            let y = HEADER + number * ROW + line * (BAR + 1);
            let [median, min, max] =
                [spread.median, spread.min, spread.max].map(|value| value * LONGEST / most);
            text += &bar(x, y, median, colour);
            text += &range(place(x) + min, place(x) + max, y + BAR / 2);
            let number = format!("{}{}", row.unit.number(spread.median), row.unit.suffix());
            text += &label(place(x) + max + 4.0, y + BAR - 2, "start", &number);
        }
    }
    text
}

fn bar(x: usize, y: usize, length: f64, colour: &str) -> String {
    format!("<rect x=\"{x}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\n")
}

fn range(from: f64, to: f64, y: usize) -> String {
    format!("<path d=\"M{from:.1} {y}H{to:.1}\" stroke=\"black\"/>\n")
}

/// A text; the names here hold nothing that XML gives a meaning to.
fn label(x: f64, y: usize, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

#[expect(clippy::cast_precision_loss, reason = "positions in a picture are small")]
fn place(x: usize) -> f64 {
    x as f64
}

#[cfg(test)]
mod tests {
    use super::{super::summary::tests::sample, *};

    #[test]
    fn each_subject_has_a_bar_whose_length_is_its_share_of_the_longest() {
        let samples = [
            sample(Subject::Catena, 300, 1, 1.0),
            sample(Subject::Catena, 300, 2, 3.0),
            sample(Subject::Native, 300, 1, 4.0),
            sample(Subject::Catena, 1000, 1, 8.0),
        ];
        let text = svg(&Group::all(&samples));
        let bars = |colour: &str| -> Vec<String> {
            // The first one is in the legend.
            let lines = text.lines().filter(|line| line.contains(colour)).skip(1);
            lines.map(|line| line.split('"').nth(5).unwrap().to_owned()).collect()
        };
        assert_eq!(bars(SUBJECTS[0].1), ["42.5", "170.0"]);
        assert_eq!(bars(SUBJECTS[1].1), ["85.0"]);
        // From the least to the most, 1 to 3 of 8.
        assert!(text.contains("M171.2 62H213.8"), "{text}");
        for word in ["create, 300 × 3", "create, 1000 × 3", "2.00 s", "kube-controller-manager"] {
            assert!(text.contains(&format!(">{word}<")), "{word} is not in {text}");
        }
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }

    #[test]
    fn nothing_at_all_is_a_bar_without_length_and_no_figure_an_empty_column() {
        let text = svg(&Group::all(&[sample(Subject::Catena, 300, 1, 0.0)]));
        assert!(text.contains("width=\"0.0\"") && !text.contains("NaN"), "{text}");
        assert!(text.contains("CPU of the controllers"), "{text}");
    }
}
