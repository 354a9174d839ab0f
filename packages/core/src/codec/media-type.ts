/** Names in media types and in the metadata API, which a control plane can replace by its own. */
export interface Brand {
  /** Segment of `application/vnd.{vendor}.protobuf`. */
  readonly vendor: string;
  /** Group of Table and PartialObjectMetadata. */
  readonly metaGroup: string;
}

/** The names that Kubernetes uses, and its clients expect. */
export const defaultBrand: Brand = { vendor: 'kubernetes', metaGroup: 'meta.k8s.io' };

/** Encoding of a request or response body. */
export type Media = 'json' | 'yaml' | 'protobuf';

export const jsonMediaType = 'application/json';
export const yamlMediaType = 'application/yaml';

/** Media type of the protobuf encoding, with the vendor of the brand. */
export function protobufMediaType(brand: Brand = defaultBrand): string {
  return `application/vnd.${brand.vendor}.protobuf`;
}

/** The media type that names `media`. */
export function mediaTypeOf(media: Media, brand: Brand = defaultBrand): string {
  if (media === 'json') return jsonMediaType;
  return media === 'yaml' ? yamlMediaType : protobufMediaType(brand);
}

/** Media types of PATCH bodies and the patch each of them means. */
export const patchMediaTypes = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
} as const;

/** The forms of PATCH bodies. */
export type PatchMediaType = (typeof patchMediaTypes)[keyof typeof patchMediaTypes];

/** A media type with its parameters, names in lower case. */
export interface MediaRange {
  /** `type/subtype`, lower case; either may be `*`. */
  readonly mediaType: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const noParameters: ReadonlyMap<string, string> = new Map();

/** Reads `type/subtype;name=value;name="value"`; undefined for any other text. Malformed parameters are omitted. */
export function parseMediaRange(text: string): MediaRange | undefined {
  const parts = splitOutsideQuotes(text, ';');
  const mediaType = (parts[0] ?? '').trim().toLowerCase();
  const slash = mediaType.indexOf('/');
  if (slash <= 0 || slash === mediaType.length - 1) return undefined;
  if (parts.length === 1) return { mediaType, parameters: noParameters };
  const parameters = new Map<string, string>();
  for (const part of parts.slice(1)) {
    const equals = part.indexOf('=');
    if (equals === -1) continue;
    const name = part.slice(0, equals).trim().toLowerCase();
    if (name !== '' && !parameters.has(name)) parameters.set(name, unquoted(part.slice(equals + 1).trim()));
  }
  return { mediaType, parameters };
}

/** Splits header text at a separator that is not inside a quoted string. */
export function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (quoted && char === '\\') i++;
    else if (char === '"') quoted = !quoted;
    else if (char === separator && !quoted) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"')
    ? value.slice(1, -1).replace(/\\(.)/g, '$1')
    : value;
}

/** `type/subtype` of a Content-Type header without its parameters; JSON when there is none. */
export function contentMediaType(header: string | undefined): string {
  if (header === undefined || header === '' || header === jsonMediaType) return jsonMediaType;
  const semicolon = header.indexOf(';');
  return (semicolon === -1 ? header : header.slice(0, semicolon)).trim().toLowerCase();
}

/** Encoding of a request body, by its Content-Type; undefined = 415. */
export function bodyMedia(contentType: string | undefined, brand: Brand = defaultBrand): Media | undefined {
  switch (contentMediaType(contentType)) {
    case jsonMediaType:
      return 'json';
    case yamlMediaType:
      return 'yaml';
    case protobufMediaType(brand):
      return 'protobuf';
    default:
      return undefined;
  }
}

/** What kind of patch a request body is; undefined = 415. A PATCH without Content-Type has none. */
export function patchTypeOfContent(contentType: string | undefined): PatchMediaType | undefined {
  const mediaType = contentMediaType(contentType);
  return Object.hasOwn(patchMediaTypes, mediaType)
    ? patchMediaTypes[mediaType as keyof typeof patchMediaTypes]
    : undefined;
}
