//! Columns of text, as kubectl prints them.

use crate::{Tone, sanitized};

/// Lines of cells below a header.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        let mut text = sanitized(text.as_ref());
        // The next lines would begin at the first column.
        if text.contains('\n') {
            text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        Self { text, tone: Tone::Plain }
    }
}

impl Cell {
    /// A text in a tone.
    #[must_use]
    pub fn toned(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { tone, ..text.into() }
    }
}

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn of<const N: usize>(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(Cell::from).to_vec()] }
    }

    /// Adds a line.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) {
        self.rows.push(row.into_iter().collect());
    }

    /// The table under a sentence that says whether all is well.
    #[must_use]
    pub fn render_under(&self, verdict: &str, is_good: bool) -> String {
        let tone = if is_good { Tone::Good } else { Tone::Bad };
        format!("{}\n{}", tone.paint(verdict), self.section())
    }

    /// The table below an empty line; nothing if it has no rows.
    #[must_use]
    pub fn section(&self) -> String {
        if self.rows.len() == 1 { String::new() } else { format!("\n{}", self.render()) }
    }

    /// The lines, each with its line end. A column that is empty but for its header is left out.
    #[must_use]
    pub fn render(&self) -> String {
        let length =
            |row: &Vec<Cell>, column: usize| row.get(column).map_or(0, |cell| cell.text.chars().count());
        let width = |column: usize| {
            let is_used = self.rows.iter().skip(1).any(|row| length(row, column) > 0);
            self.rows.iter().map(|row| length(row, column)).max().filter(|_| is_used)
        };
        let widths: Vec<Option<usize>> = (0..self.rows.first().map_or(0, Vec::len)).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut gap = 0;
            for (column, width) in widths.iter().enumerate() {
                let (Some(cell), Some(width)) = (row.get(column), width) else { continue };
                if !cell.text.is_empty() {
                    text += &" ".repeat(std::mem::take(&mut gap));
                    text += &cell.tone.paint(&cell.text);
                }
                gap += width - length(row, column) + 3;
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn a_text_of_several_lines_stays_in_its_row() {
        let mut table = Table::of(["PATH", "NOTE"]);
        table.push(["object.a == 1 &&\n  object.b == 2\n".into(), "computed".into()]);
        assert_eq!(table.render().lines().nth(1), Some("object.a == 1 && object.b == 2   computed"));
    }

    #[test]
    fn columns_line_up_and_lines_have_no_spaces_at_their_end() {
        let mut table = Table::of(["NAME", "EMPTY", "REASON", "AGE"]);
        table.push(["a".into(), "".into(), "".into(), "5m".into()]);
        table.push(["long-name".into(), "".into(), Cell::toned(Tone::Bad, "Stuck"), "".into()]);
        assert_eq!(
            strip_str(&table.render()).to_string(),
            "NAME        REASON   AGE\na                    5m\nlong-name   Stuck\n"
        );
    }
}
