/* What the theme lacks for people who read with a keyboard or a screen reader. */
const label = () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search")
  document.querySelectorAll("nav.md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code block ${i + 1}`))
  /* What scrolls has to be reached by the keyboard. */
  document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap").forEach(block => {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0
    else block.removeAttribute("tabindex")
  })
}
addEventListener("DOMContentLoaded", label)
addEventListener("load", label)
addEventListener("resize", label)
/* The buttons of code blocks are added when a block comes into view. */
new MutationObserver(label).observe(document.documentElement, { childList: true, subtree: true })
