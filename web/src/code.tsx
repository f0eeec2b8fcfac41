/** A block of code with its language, colours and a button to copy it. */
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";

import { CopyButton } from "./parts";

const kMostCharacters = 20_000; // longer blocks stay without colours
const painter = createLowlight({
  bash, c, cpp, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml,
});

type Nodes = ReturnType<typeof painter.highlight>["children"];

function spans(nodes: Nodes): ComponentChildren[] {
  return nodes.map((node) => {
    if (node.type === "text") return node.value;
    if (node.type !== "element") return null;
    const names = node.properties.className;
    return <span class={Array.isArray(names) ? names.join(" ") : undefined}>{spans(node.children as Nodes)}</span>;
  });
}

export const CodeBlock = memo(function CodeBlock({ text, language }: { text: string; language: string }) {
  const name = /^[\w+#.-]{1,24}$/.test(language) ? language.toLowerCase() : "";
  const content = useMemo(() => {
    if (name === "" || text.length > kMostCharacters || !painter.registered(name)) return text;
    return spans(painter.highlight(name, text).children);
  }, [text, name]);
  return (
    <div class="code">
      <div class="code-head">
        <span>{name || "text"}</span>
        <CopyButton text={text} label="Copy code" />
      </div>
      <pre tabIndex={0} aria-label={name ? `Code, ${name}` : "Code"} role="region">
        <code>{content}</code>
      </pre>
    </div>
  );
});
