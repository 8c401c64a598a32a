/** The style of the pages: the console's colors and typography, inlined into each page. */

/** The console's typeface, if there is a build. Pages do not wait for it or move when it loads. */
export const font = "/inter.woff2"

export const style = `
@font-face { font-family: "Inter Variable"; src: url("${font}") format("woff2"); font-weight: 100 900; font-display: optional }
:root { color-scheme: light dark;
  --ground: light-dark(oklch(98.6% .002 260), oklch(16.5% .007 262)); --surface: light-dark(#fff, oklch(19.5% .008 262));
  --sunken: light-dark(oklch(96.6% .004 260), oklch(14.5% .007 262)); --line: light-dark(oklch(91% .005 260), oklch(28% .011 262));
  --edge: light-dark(oklch(62% .012 260), oklch(55% .014 262)); --text: light-dark(oklch(23% .014 262), oklch(94% .004 260));
  --muted: light-dark(oklch(46% .014 262), oklch(72% .012 262)); --accent: light-dark(oklch(49% .2 262), oklch(76% .12 262));
  --accent-strong: light-dark(oklch(43% .2 262), oklch(81% .1 262)); --on-accent: light-dark(#fff, oklch(17% .03 262));
  --accent-soft: light-dark(oklch(95.5% .022 262), oklch(27% .05 262));
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { font: 15px/1.6 "Inter Variable", system-ui, "Segoe UI", Roboto, sans-serif; margin: 0; background: var(--ground); color: var(--text); overflow-wrap: break-word }
:is(main, .top, .foot) { max-width: 44rem; margin-inline: auto; padding-inline: 1.25rem } body.broad :is(main, .top, .foot) { max-width: 70rem }
main { padding-bottom: 4rem }
.top { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: center; padding-block: .9rem; margin-bottom: 6vh }
.bar-line { border-bottom: 1px solid var(--line); background: var(--surface); margin-bottom: 6vh } .bar-line .top { margin-bottom: 0 }
.top a:not(.button) { color: var(--muted); text-decoration: none; font-weight: 500; font-size: 14px; padding: .2rem 0 } .top a:hover { color: var(--text) }
.top a.home { color: var(--text); font-weight: 600; font-size: 15px; display: flex; gap: .55rem; align-items: center; margin-right: auto } .home img { width: 1.5rem; height: 1.5rem }
.skip { position: absolute; left: -99rem } .skip:focus { left: 1rem; top: .5rem; background: var(--surface); padding: .5rem .75rem; z-index: 2 }
h1 { font-size: 1.6rem; line-height: 1.2; letter-spacing: -.02em; font-weight: 650; margin: 0 0 .75rem; text-wrap: balance }
h2 { font-size: 1.15rem; line-height: 1.35; letter-spacing: -.01em; font-weight: 600; margin: 2.25rem 0 .75rem } h3 { font-size: 15px; font-weight: 600; margin: 0 }
p { margin: 0 0 1rem } form p { margin-top: 1rem } .muted, dt { color: var(--muted) }
code, pre { font: 13px/1.55 var(--mono) }
pre { border: 1px solid var(--line); border-radius: 8px; background: var(--sunken); padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 1rem }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .5rem 1.5rem; align-items: baseline; border: 1px solid var(--line); border-radius: 8px; background: var(--surface); padding: 1rem 1.15rem; margin: 0 0 1rem }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; overflow-x: clip }
a { color: var(--accent); text-underline-offset: 2px } a:hover { color: var(--accent-strong) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px }
input:not([type]), input[type=email] { font: inherit; color: inherit; min-height: 2.4rem; padding: .4rem .65rem; border: 1px solid var(--edge); border-radius: 6px; width: min(24rem, 100%); background: var(--surface); margin-top: .3rem }
input[type=checkbox] { width: 1rem; height: 1rem; accent-color: var(--accent); vertical-align: -.15rem } label { font-weight: 500 } p > label { font-weight: 400 }
button, .button { font: inherit; font-weight: 500; min-height: 2.4rem; padding: .4rem 1rem; border-radius: 6px; border: 1px solid transparent; background: var(--accent); color: var(--on-accent); cursor: pointer; text-decoration: none; display: inline-flex; align-items: center; justify-content: center }
button:hover, .button:hover { background: var(--accent-strong); color: var(--on-accent) }
button.quiet, .button.quiet { background: var(--surface); color: var(--text); border-color: var(--edge) } :is(button, .button).quiet:hover { background: var(--sunken) }
.told { border-left: 3px solid var(--accent); background: var(--accent-soft); border-radius: 6px; padding: .6rem .9rem }
.lead { font-size: 1.05rem; color: var(--muted); text-wrap: pretty }
.profile { display: flex; gap: 1rem; align-items: center; margin-bottom: 1.25rem; overflow: clip } .profile div { min-width: 0 } .profile :is(h1, p) { margin: 0 }
.avatar { flex: none; width: 3.5rem; height: 3.5rem; border-radius: 14px; background: var(--accent-soft); color: var(--accent); display: grid; place-items: center; font-size: 1.5rem; font-weight: 600 }
.handle { color: var(--muted) } .badge, .tags span { border: 1px solid var(--line); border-radius: 5px; background: var(--sunken); color: var(--muted); padding: .05rem .5rem; font-size: 12px }
.skills { list-style: none; padding: 0; margin: 0; border: 1px solid var(--line); border-radius: 8px; background: var(--surface) } .skills li { padding: .9rem 1.15rem; border-bottom: 1px solid var(--line) } .skills li:last-child { border: 0 } .skills p { margin: .25rem 0 }
blockquote { margin: .5rem 0 0; padding-left: .75rem; border-left: 3px solid var(--line); color: var(--muted) }
.hero { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 2rem 3.5rem; align-items: center; padding: 3vh 0 1rem } .hero h1 { font-size: clamp(1.9rem, 4.6vw, 3rem); line-height: 1.08; letter-spacing: -.035em; margin-bottom: 1rem } .hero .lead { font-size: 1.1rem }
.acts { display: flex; flex-wrap: wrap; gap: .6rem } .shot { border: 1px solid var(--line); border-radius: 10px; overflow: hidden; background: var(--surface); min-width: 0 } .shot pre { border: 0; border-radius: 0; margin: 0; background: transparent; white-space: pre; overflow-x: auto } .shot pre + pre { border-top: 1px solid var(--line); background: var(--sunken); color: var(--muted) } .shot b { font-weight: 500; color: var(--text) }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 1px; border: 1px solid var(--line); border-radius: 10px; overflow: hidden; background: var(--line); list-style: none; padding: 0; margin: 0 } .grid li { background: var(--surface); padding: 1.15rem 1.25rem } .grid p { margin: .25rem 0 0; color: var(--muted); font-size: 14px; line-height: 1.5 }
.grid svg { width: 20px; height: 20px; fill: none; stroke: var(--accent); stroke-width: 1.4; stroke-linecap: round; stroke-linejoin: round; display: block; margin-bottom: .6rem }
.begin { counter-reset: step } .begin li { counter-increment: step } .begin li::before { content: counter(step); display: grid; place-items: center; width: 1.6rem; height: 1.6rem; margin-bottom: .6rem; border-radius: 50%; background: var(--accent-soft); color: var(--accent); font-weight: 600; font-size: 13px }
.broad h2 { font-size: 1.35rem; margin: 3.5rem 0 1rem } .foot { display: flex; flex-wrap: wrap; gap: .4rem 1.25rem; padding-block: 1.25rem 2rem; font-size: 14px } .foot-line { border-top: 1px solid var(--line) } .foot a { color: var(--muted); text-decoration: none } .foot a:hover { color: var(--text); text-decoration: underline } .foot nav { display: flex; gap: 1rem; margin-left: auto } .foot a[aria-current] { color: var(--text); font-weight: 600 }
@media (max-width: 30rem) { dl { grid-template-columns: minmax(0, 1fr); gap: 0 } dd { margin-bottom: .6rem } dd:last-child { margin-bottom: 0 } .foot nav { margin-left: 0; width: 100% } }
fieldset { border: 1px solid var(--edge); border-radius: 8px; margin: 1rem 0; padding: .5rem 1rem .75rem } legend { font-weight: 600; padding: 0 .35rem }
fieldset label { display: block; margin: .3rem 0 } .within { margin: .2rem 0 .2rem 1.75rem } .within label { display: inline-block; margin-right: 1rem }
.receiver { font-size: 1.6rem; font-weight: 700; margin: 0; overflow-wrap: anywhere } .warning { border-left: 3px solid #c2410c; padding-left: .75rem }
details summary { cursor: pointer } .small { font-size: .9rem; color: var(--muted) }
@media (pointer: coarse) { button, .button, input:not([type]), input[type=email] { min-height: 2.75rem } .top a, .foot a { padding-block: .6rem } }
`.replaceAll(/\n\s*/g, "\n")
