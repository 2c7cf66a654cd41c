//! A page of the documentation.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// One page.
pub struct Page {
    /// Its path in the checkout.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A fenced block.
pub struct Block {
    /// The language after the opening fence: `sh`, `console`, `yaml`, `text`; empty if there is none.
    pub language: String,
    /// The number of its first line in the page.
    pub line: usize,
    /// Its lines, without the indentation of the fence.
    pub lines: Vec<String>,
}

/// A command that a reader types.
pub struct Typed {
    /// The number of its line in the page.
    pub line: usize,
    /// The text of the command.
    pub command: String,
    /// The output on the page: none in a block `sh`, lines in a block `console`.
    pub shown: Option<Vec<String>>,
}

impl Page {
    /// Reads a page, by its path in the checkout.
    pub fn read(path: &str) -> Result<Self> {
        let text =
            std::fs::read_to_string(checkout().join(path)).with_context(|| format!("no page {path}"))?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// Its fenced blocks.
    pub fn blocks(&self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let mut open: Option<(Block, usize)> = None;
        for (number, line) in (1..).zip(self.text.lines()) {
            let bare = line.trim_start();
            match (open.take(), bare.strip_prefix("```")) {
                (None, Some(language)) => {
                    let block =
                        Block { language: language.trim().into(), line: number + 1, lines: Vec::new() };
                    open = Some((block, line.len() - bare.len()));
                }
                (None, None) => {}
                (Some((block, _)), Some("")) => blocks.push(block),
                (Some((mut block, indent)), _) => {
                    block.lines.push(line.get(indent..).unwrap_or_default().to_owned());
                    open = Some((block, indent));
                }
            }
        }
        ensure!(open.is_none(), "{}: a block has no end", self.path);
        Ok(blocks)
    }

    /// The commands of the page, from top to bottom.
    pub fn typed(&self) -> Result<Vec<Typed>> {
        let mut all = Vec::new();
        for block in self.blocks()? {
            match block.language.as_str() {
                "sh" => all.extend(block.commands()),
                "console" => all.extend(block.dialogue()),
                _ => {}
            }
        }
        Ok(all)
    }
}

impl Block {
    /// One command per line, or several lines of which all but the last end with a backslash.
    fn commands(&self) -> Vec<Typed> {
        let mut commands: Vec<Typed> = Vec::new();
        let mut goes_on = false;
        for (line, text) in (self.line..).zip(&self.lines) {
            match commands.last_mut().filter(|_| goes_on) {
                Some(last) => last.command = format!("{}\n{text}", last.command),
                None if text.trim().is_empty() || text.starts_with('#') => continue,
                None => commands.push(Typed { line, command: text.clone(), shown: None }),
            }
            goes_on = text.ends_with('\\');
        }
        commands
    }

    /// `$ command`, followed by its output.
    fn dialogue(&self) -> Vec<Typed> {
        let mut commands: Vec<Typed> = Vec::new();
        for (line, text) in (self.line..).zip(&self.lines) {
            if let Some(command) = text.strip_prefix("$ ") {
                commands.push(Typed { line, command: command.to_owned(), shown: Some(Vec::new()) });
            } else if let Some(shown) = commands.last_mut().and_then(|last| last.shown.as_mut()) {
                shown.push(text.clone());
            }
        }
        commands
    }
}

/// The root of the checkout.
#[must_use]
pub fn checkout() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.parent().unwrap_or(suite).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Text.

```sh
# a comment
kubectl get pods \\
  --all-namespaces   # everywhere
kubectl get nodes
```

  ```console
  $ kubectl get pods
  NAME   READY
  web    1/1
  $ kubectl version
  ```

```yaml
kubectl: no command
```
";

    #[test]
    fn what_is_typed_is_found_with_its_place_and_what_is_shown_of_it() {
        let page = Page { path: "PAGE.md".into(), text: PAGE.into() };
        let typed = page.typed().unwrap();
        let seen: Vec<_> = typed.iter().map(|typed| (typed.line, typed.command.as_str())).collect();
        let first = "kubectl get pods \\\n  --all-namespaces   # everywhere";
        assert_eq!(
            seen,
            [(5, first), (7, "kubectl get nodes"), (11, "kubectl get pods"), (14, "kubectl version")]
        );
        let shown: Vec<_> = typed.iter().map(|typed| typed.shown.as_ref().map(Vec::len)).collect();
        assert_eq!(shown, [None, None, Some(2), Some(0)]);
        assert_eq!(page.blocks().unwrap()[1].lines[1], "NAME   READY");
    }

    #[test]
    fn a_block_without_an_end_is_told() {
        let page = Page { path: "PAGE.md".into(), text: "```sh\nls\n".into() };
        assert!(page.blocks().is_err());
    }
}
