import type { AccessAttributes } from '../meta/authorizer.ts';
import { pathSegmentErrors } from '../meta/names.ts';

/**
 * What a request does, as authorization, metrics and limits need it: see
 * docs/reference/api-rules.md#request-attributes.
 */
export type ResourceVerb =
  | 'create'
  | 'get'
  | 'list'
  | 'watch'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'proxy';

/**
 * What a request is about. Routing, authorization, audit and metrics all read this one record, so they cannot disagree.
 * Strings that do not apply are empty.
 */
export interface RequestAttributes extends AccessAttributes {
  /** As sent, upper case. */
  readonly method: string;
  /** The path as sent, without the query. */
  readonly path: string;
  readonly query: QueryParameters;
  /**
   * A {@link ResourceVerb}. For paths that are no resource paths, and for other methods, the HTTP method in lower
   * case.
   */
  readonly verb: string;
  /** The namespace. For the path `namespaces/{n}` and its subresources it is `n`, as in Kubernetes. */
  readonly namespace: string;
  /** Lower-case plural. */
  readonly resource: string;
  /** Name of the object. For a list or watch, the name to which `metadata.name=` in the field selector restricts it. */
  readonly name: string;
  /** Field selector of a list or watch, as sent; '' when the request has none. */
  readonly fieldSelector: string;
  /** True when the path itself names an object. */
  readonly named: boolean;
  /** True for the `/watch/` form of the path. */
  readonly watchPath: boolean;
  /** Decoded segments behind the subresource, empty ones included; only proxies have such paths. */
  readonly remainder: readonly string[];
  /** Why this path can name nothing at all (400); undefined for every well-formed path. */
  readonly problem: string | undefined;
}

type Draft = { -readonly [K in keyof RequestAttributes]: RequestAttributes[K] };

const nothing: readonly string[] = [];
/** Segments behind `namespaces/{n}/` that are subresources of the namespace, not resources in it. */
const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize']);

/** Control characters, and characters that would change the place in a hierarchical key. */
function isUnsafe(segment: string): boolean {
  if (segment === '.' || segment === '..') return true;
  for (let i = 0; i < segment.length; i++) {
    const code = segment.charCodeAt(i);
    if (code < 0x20 || code === 0x7f || code === 0x2f) return true;
  }
  return false;
}

/**
 * Splits before decoding, so an encoded slash never makes a new segment. Returns the problem as text when a segment
 * cannot be decoded or decodes to something that no name may contain.
 */
function splitPath(path: string): string[] | string {
  const segments: string[] = [];
  let start = 1;
  for (;;) {
    const slash = path.indexOf('/', start);
    const raw = slash === -1 ? path.slice(start) : path.slice(start, slash);
    let segment = raw;
    if (raw.includes('%')) {
      try {
        segment = decodeURIComponent(raw);
      } catch {
        return `the path segment ${JSON.stringify(raw)} is not validly percent-encoded`;
      }
    }
    if (isUnsafe(segment)) return `the path segment ${JSON.stringify(raw)} is not allowed`;
    segments.push(segment);
    if (slash === -1) return segments;
    start = slash + 1;
  }
}

function verbOf(method: string, named: boolean, watch: boolean): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (named) return 'get';
      return watch ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return named ? 'delete' : 'deletecollection';
    default:
      return method.toLowerCase();
  }
}

/**
 * The name that `metadata.name=x` asks for, '' when the selector does not require one name, or one that no object can
 * have. The parser of selectors validates the rest.
 */
function selectedName(selector: string): string {
  // No name needs a backslash, and a comma behind one does not separate: such a selector counts as requiring no single
  // name.
  if (!selector.includes('metadata.name') || selector.includes('\\')) return '';
  for (const term of selector.split(',')) {
    const match = /^\s*metadata\.name\s*==?\s*([^\s=!\\]+)\s*$/.exec(term);
    if (match?.[1] !== undefined) return pathSegmentErrors(match[1]).length === 0 ? match[1] : '';
  }
  return '';
}

/** The segments without the empty ones at the end, which trailing slashes make. */
function withoutTrailing(segments: readonly string[]): readonly string[] {
  if (segments.at(-1) !== '') return segments;
  return segments.slice(0, segments.findLastIndex((segment) => segment !== '') + 1);
}

/** Fills `parts` when the segments follow the grammar of resources; leaves them alone otherwise. */
function readResource(all: readonly string[], parts: Draft): void {
  const segments = withoutTrailing(all);
  const { method, query } = parts;
  const grouped = segments[0] === 'apis';
  if (!grouped && segments[0] !== 'api') return;
  let at = grouped ? 3 : 2;
  if (segments.length <= at) return;
  let special: '' | 'watch' | 'proxy' = '';
  if ((segments[at] === 'watch' || segments[at] === 'proxy') && segments.length > at + 1) {
    special = segments[at] as 'watch' | 'proxy';
    at += 1;
  }
  let namespace = '';
  if (segments[at] === 'namespaces' && segments.length > at + 1) {
    namespace = segments[at + 1] ?? '';
    const next = segments[at + 2];
    if (next !== undefined && !(namespaceSubresources.has(next) && segments.length === at + 3)) at += 2;
  }
  // An empty segment within the path (doubled slash) names nothing. The path after a subresource is forwarded and not
  // checked here.
  for (let i = Math.min(at + 2, segments.length - 1); i >= 0; i--) if (segments[i] === '') return;
  // DELETE `.../pods/` with a name that happened to be empty must not become a deletion of the collection.
  if (method === 'DELETE' && segments.length === at + 1 && all.length > segments.length) return;
  const name = segments[at + 1] ?? '';
  const named = name !== '';
  parts.isResourceRequest = true;
  parts.apiGroup = grouped ? (segments[1] ?? '') : '';
  parts.apiVersion = segments[grouped ? 2 : 1] ?? '';
  parts.namespace = namespace;
  parts.resource = segments[at] ?? '';
  parts.name = name;
  parts.named = named;
  parts.subresource = segments[at + 2] ?? '';
  if (segments.length > at + 2 && all.length > at + 3) parts.remainder = all.slice(at + 3);
  parts.watchPath = special === 'watch';
  if (special === 'proxy') parts.verb = 'proxy';
  else if (special === 'watch' && (method === 'GET' || method === 'HEAD')) parts.verb = 'watch';
  else parts.verb = verbOf(method, named, !named && query.boolean('watch') === true);
  if (!named && (parts.verb === 'list' || parts.verb === 'watch' || parts.verb === 'deletecollection')) {
    parts.fieldSelector = query.first('fieldSelector') ?? '';
    // A permission for one name does not extend to a deletion of the collection.
    if (parts.verb !== 'deletecollection') parts.name = selectedName(parts.fieldSelector);
  }
}

/** Path and query of a request target in origin form (`/x?y`) or absolute form (`http://host/x?y`). */
function splitTarget(target: string): { path: string; query: string; problem?: string } {
  let start = 0;
  if (target.charCodeAt(0) !== 0x2f) {
    const scheme = /^https?:\/\/[^/?]*/i.exec(target);
    if (scheme === null) return { path: target, query: '' };
    if (!URL.canParse(scheme[0])) {
      return { path: '/', query: '', problem: `the request target ${JSON.stringify(target)} is not a valid URL` };
    }
    start = scheme[0].length;
  }
  const mark = target.indexOf('?', start);
  const path = mark === -1 ? target.slice(start) : target.slice(start, mark);
  return { path: path === '' ? '/' : path, query: mark === -1 ? '' : target.slice(mark + 1) };
}

/**
 * The one parser of request paths:
 * `/{api|apis/group}/{version}[/watch]/[namespaces/{ns}/]{resource}[/{name}[/{subresource}]]`. Costs the same whatever
 * kinds are registered, and never throws: a path outside the grammar is not a resource request, a path that can name
 * nothing has a `problem`.
 *
 * @param target the request target as received, e.g. `/api/v1/pods?watch=1`
 */
export function parseRequestAttributes(method: string, target: string): RequestAttributes {
  const { path, query: queryText, problem } = splitTarget(target);
  const query = queryText === '' ? QueryParameters.empty : new QueryParameters(queryText);
  const parts: Draft = {
    method,
    path,
    query,
    verb: '',
    isResourceRequest: false,
    apiGroup: '',
    apiVersion: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    fieldSelector: '',
    named: false,
    watchPath: false,
    remainder: nothing,
    problem,
  };
  if (problem === undefined && path.charCodeAt(0) !== 0x2f) {
    parts.problem = `the request target ${JSON.stringify(path)} is not a path`;
  } else if (problem === undefined) {
    const segments = splitPath(path);
    if (typeof segments === 'string') parts.problem = segments;
    else readResource(segments, parts);
  }
  if (!parts.isResourceRequest) parts.verb = method.toLowerCase();
  return parts;
}

/**
 * Undoes percent encoding and `+`; undefined when a `%` is not followed by two hex digits or the bytes are not UTF-8.
 */
function decodeComponent(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

/**
 * The parameters of a query string: see docs/reference/api-rules.md#query-parameters. Names and values are
 * percent-decoded; a pair that cannot be decoded is ignored.
 */
export class QueryParameters {
  static readonly empty = new QueryParameters('');
  /** As it was sent, without the question mark. */
  readonly text: string;
  readonly #values = new Map<string, string[]>();

  constructor(text: string) {
    this.text = text;
    if (text === '') return;
    for (const pair of text.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
      const value = equals === -1 ? '' : decodeComponent(pair.slice(equals + 1));
      if (name === undefined || value === undefined) continue;
      const values = this.#values.get(name);
      if (values === undefined) this.#values.set(name, [value]);
      else values.push(value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The first value, undefined when the parameter was not sent. */
  first(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** Every value in the order sent. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /**
   * The value of a boolean parameter; undefined when it was not sent. See docs/reference/api-rules.md#query-parameters.
   */
  boolean(name: string): boolean | undefined {
    const value = this.first(name);
    return value === undefined ? undefined : value !== '0' && value.toLowerCase() !== 'false';
  }
}
