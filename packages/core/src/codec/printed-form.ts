import { jsonText, parseJsonText } from '../json/json.ts';
import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { documentOf, type JsonShape } from './json-form.ts';
import { jsonMediaType, yamlMediaType } from './media-type.ts';
import {
  type ListBody,
  type ListEnvelope,
  type ListMetadata,
  type ListPage,
  listMetadata,
  textPieces,
  type WatchForm,
  type WireForm,
} from './wire-form.ts';
import { toYaml } from './yaml.ts';
import { yamlWatchForm } from './yaml-watch-form.ts';

/** A layout for people. Lists are laid out item by item, so that a long one is never in memory as a whole. */
interface Printer {
  readonly contentType: string;
  /**
   * Larger objects are answered as compact JSON, which is also valid pretty JSON and YAML: laying them out would occupy
   * the event loop.
   */
  readonly maxBytes: number;
  document(value: unknown): Buffer;
  /** Beginning of a list that has at least one item. */
  head(envelope: ListEnvelope, metadata: ListMetadata): string;
  item(value: unknown, first: boolean): string;
  readonly tail: string;
}

const prettyPrinter: Printer = {
  contentType: jsonMediaType,
  maxBytes: Number.POSITIVE_INFINITY,
  document: (value) => Buffer.from(`${jsonText(value, 2)}\n`),
  head: (envelope, metadata) =>
    JSON.stringify(emptyList(envelope, metadata), null, 2).slice(0, -'[]\n}'.length).concat('[\n    '),
  item: (value, first) => `${first ? '' : ',\n    '}${jsonText(value, 2).replaceAll('\n', '\n    ')}`,
  tail: '\n  ]\n}\n',
};

const yamlPrinter: Printer = {
  contentType: yamlMediaType,
  maxBytes: 256 * 1024,
  document: toYaml,
  head: (envelope, metadata) =>
    toYaml(emptyList(envelope, metadata)).toString('utf8').slice(0, -' []\n'.length).concat('\n'),
  item: (value) => toYaml([value]).toString('utf8'),
  tail: '',
};

/** JSON with two spaces of indentation. Watches stay compact: their frames are lines. */
export function prettyJsonForm(shape: JsonShape, compact: WireForm): WireForm {
  return new PrintedForm(shape, prettyPrinter, compact, () => compact.watch());
}

/** YAML. A watch is a stream of documents. */
export function yamlForm(shape: JsonShape, compact: WireForm): WireForm {
  let watch: WatchForm | undefined;
  return new PrintedForm(shape, yamlPrinter, compact, () => {
    const json = compact.watch();
    watch ??= json && yamlWatchForm(json);
    return watch;
  });
}

/** A value that belongs to no kind, such as a Status or a discovery document, as JSON or YAML. */
export function encodeDocument(media: 'json' | 'yaml', value: unknown, pretty: boolean): Buffer {
  if (media === 'yaml') return yamlPrinter.document(value);
  return pretty ? prettyPrinter.document(value) : Buffer.from(`${jsonText(value)}\n`);
}

class PrintedForm implements WireForm {
  readonly contentType: string;
  readonly watch: () => WatchForm | undefined;
  readonly #shape: JsonShape;
  readonly #printer: Printer;
  readonly #compact: WireForm;

  constructor(shape: JsonShape, printer: Printer, compact: WireForm, watch: () => WatchForm | undefined) {
    this.contentType = printer.contentType;
    this.watch = watch;
    this.#shape = shape;
    this.#printer = printer;
    this.#compact = compact;
  }

  stored(object: StoredObject): Buffer {
    const json = this.#compact.stored(object);
    return json.length > this.#printer.maxBytes ? json : this.#printer.document(parseJsonText(json.toString('utf8')));
  }

  value(object: KubeObject | Status): Buffer {
    return this.#printer.document(documentOf(this.#shape, object));
  }

  list(page: ListPage): ListBody {
    const envelope = this.#shape.list;
    const metadata = listMetadata(page);
    if (page.list.count === 0) {
      const head = this.#printer.document(emptyList(envelope, metadata));
      return { head, items: [], tail: Buffer.alloc(0), ready: true };
    }
    return {
      head: Buffer.from(this.#printer.head(envelope, metadata)),
      items: textPieces(this.#items(page)),
      tail: Buffer.from(this.#printer.tail),
      ready: false,
    };
  }

  *#items(page: ListPage): Generator<string> {
    let first = true;
    for (const object of page.list.objects()) {
      yield this.#printer.item(parseJsonText(this.#shape.text(object)), first);
      first = false;
    }
  }
}

/** The items are last, so that a printer can split the document there. */
function emptyList(envelope: ListEnvelope, metadata: ListMetadata): unknown {
  const { kind, apiVersion, extra, field } = envelope;
  return { kind, apiVersion, metadata, ...extra, [field]: [] };
}
