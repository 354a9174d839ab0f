import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';
import { DocumentError, isDocumentError, type ParsedDocument } from '../json/document-error.ts';
import { parseJson, withMarkedBigInts } from '../json/json.ts';
import { YamlBuilder } from './yaml-builder.ts';

/**
 * Greatest size of a YAML body; parsing YAML costs twenty times as much as JSON, and a body must not occupy the event
 * loop for long.
 */
export const maxYamlBytes = 512 * 1024;

const limits = { maxDepth: 100, maxAliases: 100, maxExpandedBytes: 3 * 1024 * 1024 };

const require = createRequire(import.meta.url);
let loaded: typeof import('js-yaml') | undefined;

/** Loaded on first use: most processes never see YAML. */
function library(): typeof import('js-yaml') {
  loaded ??= require('js-yaml') as typeof import('js-yaml');
  return loaded;
}

/**
 * Parses a YAML body of one document. YAML 1.2 core schema, with octal numbers of the form `0644` as manifests mean
 * them; times, `yes` and `no` are text. Repeated fields are reported, the last one counts. JSON, which is also YAML, is
 * parsed by the faster parser of JSON, with its limits.
 *
 * @throws DocumentError for syntax errors, custom tags, merge keys, keys that are not text, numbers that JSON cannot
 * represent, several documents, and everything over a limit: 512 KiB, 100 levels, 100 aliases counted as they expand.
 */
export function parseYaml(bytes: Buffer): ParsedDocument {
  if (startsLikeJson(bytes)) {
    try {
      return parseJson(bytes, { duplicates: true });
    } catch (error) {
      if (!isDocumentError(error) || error.reason !== 'syntax') throw error;
    }
  }
  if (bytes.length > maxYamlBytes) {
    throw new DocumentError('yaml', 'tooLarge', `a YAML document may have at most ${maxYamlBytes} bytes`);
  }
  if (!isUtf8(bytes)) throw new DocumentError('yaml', 'encoding', 'the document is not valid UTF-8');
  const text = bytes.toString('utf8');
  return new YamlBuilder(library(), eventsOf(text), text, limits).document();
}

/**
 * Any JSON value as YAML, in block style and with a newline at the end. Strings that older readers would parse as
 * another type are quoted.
 */
export function toYaml(value: unknown): Buffer {
  const options = { noRefs: true, lineWidth: -1, seqNoIndent: true, skipInvalid: true };
  const { marked, restore } = withMarkedBigInts(value);
  return Buffer.from(restore(library().dump(marked, options)));
}

function eventsOf(text: string) {
  try {
    return library().parseEvents(text, { maxDepth: limits.maxDepth });
  } catch (error) {
    // `reason` and `mark` leave out the excerpt of the document that `message` has.
    const { reason, mark } = error as { reason?: unknown; mark?: { line?: unknown; column?: unknown } };
    if (typeof reason !== 'string') throw error;
    const place = typeof mark?.line === 'number' ? ` (line ${mark.line + 1}, column ${Number(mark.column) + 1})` : '';
    throw new DocumentError('yaml', reason.includes('maxDepth') ? 'tooDeep' : 'syntax', `${reason}${place}`);
  }
}

function startsLikeJson(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x20) return byte === 0x7b;
  return false;
}
