import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/** Attributes with addresses, by element, as in kube-apiserver. */
const linkAttributes: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    a: ['href'],
    applet: ['codebase'],
    area: ['href'],
    audio: ['src'],
    base: ['href'],
    blockquote: ['cite'],
    body: ['background'],
    button: ['formaction'],
    command: ['icon'],
    del: ['cite'],
    embed: ['src'],
    form: ['action'],
    frame: ['longdesc', 'src'],
    head: ['profile'],
    html: ['manifest'],
    iframe: ['longdesc', 'src'],
    img: ['longdesc', 'src', 'usemap'],
    input: ['src', 'usemap', 'formaction'],
    ins: ['cite'],
    link: ['href'],
    object: ['classid', 'codebase', 'data', 'usemap'],
    q: ['cite'],
    script: ['src'],
    source: ['src'],
    video: ['poster', 'src'],
  }),
);

/** Elements whose content is text until their end tag. */
const textElements: ReadonlySet<string> = new Set([
  ...['iframe', 'noembed', 'noframes', 'script', 'style', 'textarea', 'title', 'xmp'],
]);

/** Longer tags are passed as they are. */
const longestTag = 256 * 1024;

/** Where a page is served: the addresses of its server become paths below the proxy. */
export interface PagePlace {
  /** Path of the proxy, without a slash at its end. */
  readonly prefix: string;
  /** Origin of the server of the page, such as `http://10.0.0.1:80`. */
  readonly origin: string;
}

interface Span {
  readonly start: number;
  end: number;
}

/** An attribute by the positions of its name and its value in the tag. */
interface Attribute {
  readonly name: Span;
  value: Span | undefined;
}

const isSpace = (char: string) => /[\t\n\f\r ]/.test(char);
const escapes: Readonly<Record<string, string>> = {
  '"': '%22',
  "'": '%27',
  '<': '%3C',
  '>': '%3E',
  '&': '%26',
  '`': '%60',
};

/** A tag that is being read: where its attributes are. The states are those of the HTML standard, 13.2.5. */
class TagReader {
  text = '';
  readonly attributes: Attribute[] = [];
  #state: 'tagName' | 'between' | 'name' | 'afterName' | 'beforeValue' | 'unquoted' | '"' | "'" = 'tagName';
  #current: Attribute | undefined;

  /** Adds the next character; returns true at the end of the tag. */
  add(char: string): boolean {
    const at = this.text.length;
    this.text += char;
    const state = this.#state;
    if (state === '"' || state === "'") {
      if (char === state) this.#endValue(at);
      return false;
    }
    if (state === 'beforeValue') {
      if (isSpace(char)) return false;
      if (char === '"' || char === "'") {
        this.#state = char;
        this.#startValue(at + 1);
        return false;
      }
      this.#state = 'unquoted';
      this.#startValue(at);
    }
    if (char === '>') {
      if (this.#state === 'unquoted') this.#endValue(at);
      return true;
    }
    if (this.#state === 'unquoted') {
      if (isSpace(char)) this.#endValue(at);
    } else if (isSpace(char) || char === '/') {
      this.#state = isSpace(char) && (state === 'name' || state === 'afterName') ? 'afterName' : 'between';
    } else if (char === '=' && (state === 'name' || state === 'afterName')) {
      this.#state = 'beforeValue';
    } else if (state !== 'tagName') {
      if (state !== 'name') this.#startAttribute(at);
      if (this.#current) this.#current.name.end = at + 1;
    }
    return false;
  }

  /** Name of the element, in lower case. */
  get element(): string {
    return /^<\/?([^\t\n\f\r />]*)/.exec(this.text)?.[1]?.toLowerCase() ?? '';
  }

  textOf({ start, end }: Span): string {
    return this.text.slice(start, end);
  }

  #startAttribute(at: number): void {
    this.#current = { name: { start: at, end: at + 1 }, value: undefined };
    this.attributes.push(this.#current);
    this.#state = 'name';
  }

  #startValue(at: number): void {
    if (this.#current) this.#current.value = { start: at, end: at };
  }

  #endValue(at: number): void {
    if (this.#current?.value) this.#current.value.end = at;
    this.#state = 'between';
  }
}

/**
 * Rewrites the links of a page: absolute paths and addresses of the server of the page become paths below the proxy, as
 * in kube-apiserver. The page is text in which every character stands for a byte. Everything but addresses stays as it
 * is, and only a tag is kept until its end.
 */
export class LinkRewriter {
  readonly #origin: string;
  readonly #prefix: string;
  /** The text that ends what is being passed: a comment, a declaration, or the content of an element. */
  #until: RegExp | undefined;
  #tag: TagReader | undefined;
  /** Text at the end of the last part whose meaning depends on the next one. */
  #rest = '';

  constructor({ origin, prefix }: PagePlace) {
    this.#origin = `${origin}/`;
    this.#prefix = prefix.replaceAll(/["'<>&`]/g, (char) => escapes[char] ?? char);
  }

  /** Returns what is known of the rewritten page after the next part of it. */
  add(part: string): string {
    const text = this.#rest + part;
    this.#rest = '';
    let result = '';
    for (let at = 0; at < text.length; ) {
      if (this.#tag !== undefined) {
        const ended = this.#tag.add(text[at] as string);
        at += 1;
        if (ended) result += this.#endTag(this.#tag);
        else if (this.#tag.text.length > longestTag) {
          result += this.#tag.text;
          this.#tag = undefined;
        }
        continue;
      }
      const [passed, next] = this.#until ? this.#passUntil(this.#until, text, at) : this.#passText(text, at);
      result += passed;
      at = next;
    }
    return result;
  }

  /** Returns the rest at the end of the page. */
  end(): string {
    return (this.#tag?.text ?? '') + this.#rest;
  }

  #passText(text: string, at: number): [string, number] {
    const open = text.indexOf('<', at);
    if (open === -1) return [text.slice(at), text.length];
    const start = /^<(?:!--|[!?]|\/?[a-z])/i.exec(text.slice(open, open + 4))?.[0];
    if (start === undefined && text.length - open < 4) {
      this.#rest = text.slice(open);
      return [text.slice(at, open), text.length];
    }
    if (start === undefined) return [text.slice(at, open + 1), open + 1];
    if (/[a-z]$/i.test(start)) {
      this.#tag = new TagReader();
      return [text.slice(at, open), open];
    }
    if (start === '<!' && text.length - open < 4) {
      this.#rest = text.slice(open);
      return [text.slice(at, open), text.length];
    }
    this.#until = start === '<!--' ? /--!?>/ : />/;
    // `<!-->` is a comment.
    const next = open + (start === '<!--' ? 2 : start.length);
    return [text.slice(at, next), next];
  }

  #passUntil(end: RegExp, text: string, at: number): [string, number] {
    const found = end.exec(text.slice(at));
    if (found !== null) {
      this.#until = undefined;
      const next = at + found.index + (found[0].startsWith('</') ? 0 : found[0].length);
      return [text.slice(at, next), next];
    }
    // The end may be in two parts.
    const kept = Math.max(at, text.length - 12);
    this.#rest = text.slice(kept);
    return [text.slice(at, kept), text.length];
  }

  #endTag(tag: TagReader): string {
    this.#tag = undefined;
    const { text, element, attributes } = tag;
    if (text.startsWith('</')) return text;
    if (textElements.has(element)) this.#until = new RegExp(`</${element}(?=[\\t\\n\\f\\r />])`, 'i');
    const names = linkAttributes.get(element);
    if (names === undefined) return text;
    let result = '';
    let copied = 0;
    for (const { name, value } of attributes) {
      if (value === undefined || !names.includes(tag.textOf(name).toLowerCase())) continue;
      const address = tag.textOf(value);
      const path = this.#pathOf(address);
      if (path === undefined) continue;
      result += text.slice(copied, value.start) + this.#prefix + path;
      copied = value.end;
    }
    return result + text.slice(copied);
  }

  /** Path of an address on the server of the page that is not below the proxy yet; undefined for all others. */
  #pathOf(address: string): string | undefined {
    if (address.startsWith(this.#origin)) return address.slice(this.#origin.length - 1);
    if (!address.startsWith('/') || address.startsWith('//')) return undefined;
    return address === this.#prefix || address.startsWith(`${this.#prefix}/`) ? undefined : address;
  }
}

const decompressors = {
  '': undefined,
  identity: undefined,
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
} as const;

const codingOf = ({ headers }: IncomingMessage) => headers['content-encoding'] ?? '';

/** Status codes of responses without a page, or with a part of one. */
const withoutPage: ReadonlySet<number> = new Set([204, 206, 304]);

/** Whether a response is a page whose links can be rewritten. */
export function hasLinks(answer: IncomingMessage): boolean {
  const type = (answer.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  return type === 'text/html' && !withoutPage.has(answer.statusCode ?? 0) && codingOf(answer) in decompressors;
}

/** Streams that rewrite the links of a page; the result has no content coding. */
export function linkRewriting(answer: IncomingMessage, place: PagePlace): Transform[] {
  const rewriter = new LinkRewriter(place);
  const rewriting = new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, Buffer.from(rewriter.add(chunk.toString('latin1')), 'latin1')),
    flush: (done) => done(null, Buffer.from(rewriter.end(), 'latin1')),
  });
  const decompress = decompressors[codingOf(answer) as keyof typeof decompressors];
  return decompress ? [decompress(), rewriting] : [rewriting];
}
