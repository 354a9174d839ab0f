import type { AliasEvent, Event, MappingEvent, ScalarEvent, SequenceEvent } from 'js-yaml';
import { DocumentError, noteDuplicate, noteRepeatedKey, type ParsedDocument, placeOf } from '../json/document-error.ts';
import { setOwn } from '../json/json.ts';
import { plainScalar, taggedScalar } from './yaml-scalar.ts';

type YamlLibrary = typeof import('js-yaml');
type NodeEvent = ScalarEvent | SequenceEvent | MappingEvent;

/** Limits of a YAML document: see docs/reference/api-rules.md#limits-of-a-request. */
export interface YamlLimits {
  /** Maximum nesting depth, with aliases expanded. */
  readonly maxDepth: number;
  /**
   * Maximum number of aliases after expansion; an alias inside of an aliased node counts each time the node is used.
   */
  readonly maxAliases: number;
  /** Approximate maximum number of bytes of text, with aliases expanded. */
  readonly maxExpandedBytes: number;
}

interface Anchor {
  readonly value: unknown;
  /** Levels below the anchored node. */
  readonly height: number;
  readonly aliases: number;
  readonly size: number;
}

const standardTag = /^(?:!!|!<tag:yaml\.org,2002:)(str|int|float|bool|null|seq|map)>?$/;

/**
 * Builds the value of a YAML document from parser events. It replaces the construction of the library, so that aliases
 * are counted as they are expanded, repeated keys are reported with their path instead of rejected, and numbers that
 * JSON cannot represent are rejected. Aliases become copies: nothing in the result is shared.
 */
export class YamlBuilder {
  readonly #library: YamlLibrary;
  readonly #events: readonly Event[];
  readonly #source: string;
  readonly #limits: YamlLimits;
  readonly #anchors = new Map<string, Anchor>();
  readonly #duplicates: string[] = [];
  readonly #repeated: string[] = [];
  readonly #path: (string | number)[] = [];
  #at = 0;
  #aliases = 0;
  #size = 0;
  #deepest = 0;

  constructor(library: YamlLibrary, events: readonly Event[], source: string, limits: YamlLimits) {
    this.#library = library;
    this.#events = events;
    this.#source = source;
    this.#limits = limits;
  }

  /** @throws DocumentError when the events are not exactly one document within the limits. */
  document(): ParsedDocument {
    const ids = this.#library.EVENT_ID;
    const first = this.#next();
    if (first?.type !== ids.DOCUMENT) throw new DocumentError('yaml', 'syntax', 'the document is empty');
    if (first.directives.some((directive) => directive.kind === 'tag'))
      throw this.#refused('tag directives are not allowed', 0);
    const value = this.#node(0);
    this.#next();
    this.#skipEmptyDocuments();
    if (this.#at < this.#events.length) throw new DocumentError('yaml', 'syntax', 'more than one document in the body');
    return {
      value,
      duplicateFields: this.#duplicates,
      ...(this.#repeated.length > 0 ? { repeatedKeys: this.#repeated } : {}),
    };
  }

  /** Skips empty documents, because many manifests have a separator (`---`) after their only document. */
  #skipEmptyDocuments(): void {
    for (; this.#at < this.#events.length; this.#at += 3) {
      const content = this.#events[this.#at + 1];
      if (content?.type !== this.#library.EVENT_ID.SCALAR || content.valueStart !== -1 || content.tagStart !== -1)
        return;
    }
  }

  #next(): Event | undefined {
    return this.#events[this.#at++];
  }

  #node(depth: number): unknown {
    const event = this.#next();
    const ids = this.#library.EVENT_ID;
    if (depth > this.#deepest) this.#deepest = depth;
    switch (event?.type) {
      case ids.SCALAR:
      case ids.SEQUENCE:
      case ids.MAPPING:
        return event.anchorStart === -1 ? this.#content(event, depth) : this.#anchored(event, depth);
      case ids.ALIAS:
        return this.#alias(event, depth);
      default:
        throw new DocumentError('yaml', 'syntax', 'the document ends too early');
    }
  }

  #content(event: NodeEvent, depth: number): unknown {
    const ids = this.#library.EVENT_ID;
    this.#size += 2;
    if (event.type === ids.SCALAR) return this.#scalar(event);
    if (event.tagStart !== -1) this.#checkCollectionTag(event, event.type === ids.SEQUENCE ? 'seq' : 'map');
    return event.type === ids.SEQUENCE ? this.#sequence(depth) : this.#mapping(depth);
  }

  #sequence(depth: number): unknown[] {
    const items: unknown[] = [];
    while (this.#events[this.#at]?.type !== this.#library.EVENT_ID.POP) {
      this.#path.push(items.length);
      items.push(this.#node(depth + 1));
      this.#path.pop();
    }
    this.#at++;
    return items;
  }

  #mapping(depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    while (this.#events[this.#at]?.type !== this.#library.EVENT_ID.POP) {
      const offset = positionOf(this.#events[this.#at]);
      const key = this.#key();
      this.#path.push(key);
      if (Object.hasOwn(object, key)) {
        noteDuplicate(this.#duplicates, this.#path);
        noteRepeatedKey(this.#repeated, key, this.#source, offset);
      }
      setOwn(object, key, this.#node(depth + 1));
      this.#path.pop();
    }
    this.#at++;
    return object;
  }

  #key(): string {
    const event = this.#events[this.#at];
    const { EVENT_ID: ids, SCALAR_STYLE: styles } = this.#library;
    if (event?.type === ids.ALIAS) {
      const value = this.#node(0);
      if (typeof value === 'string') return value;
    } else if (event?.type === ids.SCALAR) {
      const text = this.#text(event);
      if (event.style !== styles.PLAIN || event.tagStart !== -1) {
        this.#node(0);
        return text;
      }
      if (text === '<<') throw this.#refused('merge keys are not allowed', event.valueStart);
      if (plainScalar(text) !== null) {
        if (event.anchorStart !== -1) this.#node(0);
        else this.#at++;
        this.#size += text.length + 2;
        return text;
      }
    }
    throw this.#refused('the key of a mapping must be text', positionOf(event));
  }

  #scalar(event: ScalarEvent): unknown {
    const text = this.#text(event);
    this.#size += text.length;
    try {
      if (event.tagStart !== -1) return this.#tagged(event, text);
      return event.style === this.#library.SCALAR_STYLE.PLAIN ? plainScalar(text) : text;
    } catch (error) {
      if (error instanceof RangeError) throw this.#refused(error.message, event.valueStart);
      throw error;
    }
  }

  #tagged(event: ScalarEvent, text: string): unknown {
    const tag = standardTag.exec(this.#tagOf(event))?.[1];
    if (tag === undefined || tag === 'seq' || tag === 'map')
      throw this.#refused('only standard tags are allowed', event.tagStart);
    return taggedScalar(text, tag);
  }

  #checkCollectionTag(event: SequenceEvent | MappingEvent, wanted: 'seq' | 'map'): void {
    if (standardTag.exec(this.#tagOf(event))?.[1] === wanted) return;
    throw this.#refused('only standard tags are allowed', event.tagStart);
  }

  #anchored(event: NodeEvent, depth: number): unknown {
    const before = { aliases: this.#aliases, size: this.#size, deepest: this.#deepest };
    this.#deepest = depth;
    const value = this.#content(event, depth);
    // An anchor is known only after its node is complete, so that no value can contain itself.
    this.#anchors.set(this.#source.slice(event.anchorStart, event.anchorEnd), {
      value,
      height: this.#deepest - depth,
      aliases: this.#aliases - before.aliases,
      size: this.#size - before.size,
    });
    this.#deepest = Math.max(this.#deepest, before.deepest);
    return value;
  }

  #alias(event: AliasEvent, depth: number): unknown {
    const anchor = this.#anchors.get(this.#source.slice(event.anchorStart, event.anchorEnd));
    if (anchor === undefined) throw this.#refused('an alias names nothing that comes before it', event.anchorStart);
    const { maxAliases, maxExpandedBytes, maxDepth } = this.#limits;
    this.#aliases += 1 + anchor.aliases;
    this.#size += anchor.size;
    if (this.#aliases > maxAliases) throw this.#over('tooLarge', `more than ${maxAliases} aliases`, event.anchorStart);
    if (this.#size > maxExpandedBytes) throw this.#over('tooLarge', 'aliases expand to too much', event.anchorStart);
    if (depth + anchor.height > maxDepth)
      throw this.#over('tooDeep', `deeper than ${maxDepth} levels`, event.anchorStart);
    this.#deepest = Math.max(this.#deepest, depth + anchor.height);
    return copyOf(anchor.value);
  }

  #text(event: ScalarEvent): string {
    return this.#library.getScalarValue(this.#source, event);
  }

  #tagOf(event: NodeEvent): string {
    return this.#source.slice(event.tagStart, event.tagEnd);
  }

  #refused(what: string, offset: number): DocumentError {
    return this.#over('syntax', what, offset);
  }

  #over(reason: 'syntax' | 'tooLarge' | 'tooDeep', what: string, offset: number): DocumentError {
    return new DocumentError('yaml', reason, `${what} (${placeOf(this.#source, Math.max(0, offset))})`);
  }
}

function positionOf(event: Event | undefined): number {
  if (event === undefined) return 0;
  if ('valueStart' in event) return event.valueStart;
  if ('start' in event) return event.start;
  return 'anchorStart' in event ? event.anchorStart : 0;
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) setOwn(copy, key, copyOf(item));
  return copy;
}
