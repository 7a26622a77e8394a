// Draws the diagrams of a page that has some: the library beside this file is large, so no other page loads it.
const diagrams = document.querySelectorAll("pre.mermaid");
if (diagrams.length) {
  const library = document.createElement("script");
  library.src = new URL("mermaid.tiny.js", document.currentScript.src);
  library.onload = () => {
    const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    mermaid.initialize({ startOnLoad: false, theme: isDark ? "dark" : "neutral" });
    mermaid.run({ nodes: diagrams });
  };
  document.head.append(library);
}
