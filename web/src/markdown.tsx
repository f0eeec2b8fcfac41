/**
 * Markdown to elements of the page. No HTML text is ever made: the parser's tokens become elements of an allow-list, markup in the text
 * stays text, links go to http, https and mailto alone, pictures are not loaded.
 */
import MarkdownIt, { type Token } from "markdown-it";
import type { ComponentChildren, VNode } from "preact";
import { h } from "preact";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";

import { CodeBlock } from "./code";

const kMostCharacters = 200_000; // longer texts are shown as they are
const kTags = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em s a".split(" "),
);

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true, maxNesting: 40 });
parser.validateLink = () => true; // safeLink() decides, and shows what it refuses as text

function safeLink(href: string): string | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

interface Open {
  tag: string;
  props: Record<string, unknown>;
  children: ComponentChildren[];
}

function attributes(token: Token): Record<string, unknown> {
  const get = (name: string) => token.attrs?.find(([key]) => key === name)?.[1];
  if (token.tag === "ol") {
    const first = Number(get("start"));
    return Number.isSafeInteger(first) && get("start") !== undefined ? { start: first } : {};
  }
  if (token.tag === "th" || token.tag === "td") {
    const side = /^text-align:(left|right|center)$/.exec(String(get("style") ?? ""))?.[1];
    return side ? { class: `align-${side}` } : {};
  }
  if (token.tag !== "a") return {};
  const href = safeLink(String(get("href") ?? ""));
  return href === null ? {} : { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" };
}

function close(open: Open): VNode {
  if (open.tag === "a" && open.props.href === undefined) return <span class="no-link">{open.children}</span>;
  if (open.tag !== "table") return h(open.tag, open.props, open.children);
  return (
    <div class="scroll" role="region" aria-label="Table" tabIndex={0}>
      <table>{open.children}</table>
    </div>
  );
}

function leaf(token: Token): ComponentChildren {
  switch (token.type) {
    case "inline":
      return elements(token.children ?? []);
    case "fence":
    case "code_block":
      return <CodeBlock text={token.content.replace(/\n$/, "")} language={(token.info ?? "").trim().split(/\s+/)[0] ?? ""} />;
    case "code_inline":
      return <code>{token.content}</code>;
    case "hardbreak":
    case "softbreak":
      return <br />;
    case "hr":
      return <hr />;
    case "image":
      return <span class="no-link">[picture: {token.content || "without a text"}]</span>;
    default:
      return token.content;
  }
}

/** The parser nests at most 40 deep, so this is no deep recursion: inline tokens alone have children. */
function elements(tokens: Token[]): ComponentChildren[] {
  const root: Open = { tag: "", props: {}, children: [] };
  const stack = [root];
  for (const token of tokens) {
    const top = stack[stack.length - 1] ?? root;
    const known = kTags.has(token.tag) && !token.hidden;
    if (token.nesting === 0) top.children.push(leaf(token));
    else if (!known) continue;
    else if (token.nesting === 1) stack.push({ tag: token.tag, props: attributes(token), children: [] });
    else if (stack.length > 1) {
      stack.pop();
      (stack[stack.length - 1] ?? root).children.push(close(top));
    }
  }
  return root.children;
}

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const content = useMemo(() => {
    if (text.length > kMostCharacters) return <pre class="plain">{text}</pre>;
    return elements(parser.parse(text, {}));
  }, [text]);
  return <div class="markdown">{content}</div>;
});
