"""The hosted page's style sheet: light and dark, from 320 px up. The session's two colours come before it."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #fff; --text: #1b1f24; --soft: #57606a; --line: #c9d0d8; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1216; --card: #191e24; --text: #e8ebef; --soft: #a3adb8; --line: #3d4650; --bad: #ff8a80;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
main {
  width: calc(100% - 1.5rem); max-width: 27rem; margin: clamp(.75rem, 6vw, 4rem) auto 0; padding: 1.5rem;
  background: var(--card); border: 1px solid var(--line); border-top: .35rem solid var(--accent);
  border-radius: .75rem;
}
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
p { margin: .5rem 0 0; }
.brand, dt, footer { color: var(--soft); }
.brand { margin: 0 0 .25rem; font-weight: 600; }
.said {
  margin: 1.25rem 0 0; padding-left: .75rem; border-left: .25rem solid var(--accent); font-weight: 600;
}
.bad { border-color: var(--bad); color: var(--bad); }
dl { margin: 1rem 0 0; display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; }
dd { margin: 0; text-align: right; }
dd, footer, .said { text-wrap: balance; }
form { margin-top: 1.5rem; display: grid; gap: .75rem; }
button {
  min-height: 3rem; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: .5rem;
  background: transparent; color: var(--text); font: inherit; font-weight: 600; cursor: pointer;
}
button.main { background: var(--accent); color: var(--on-accent); }
a { display: inline-block; margin-top: .75rem; color: inherit; }
footer { max-width: 27rem; margin: 1rem auto; padding: 0 1.5rem; text-align: center; font-size: .875rem; }
"""
