import { createHash } from 'node:crypto';
import type { Brand } from '../codec/media-type.ts';
import { servedGroups } from '../discovery/served-groups.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { GroupVersion } from '../meta/types.ts';
import { openApiV3Document, openApiV3Index } from './open-api-document.ts';
import type { OpenApiInfo } from './open-api-types.ts';
import { documentPath } from './resource-paths.ts';
import { openApiV2Document } from './swagger-document.ts';
import { mergeSwagger, type SwaggerPart } from './swagger-part.ts';
import { encodeSwagger } from './swagger-protobuf.ts';

/** A document ready to be sent. The bytes are shared: do not change them. */
export interface OpenApiFile {
  readonly bytes: Buffer;
  /** SHA-256 of the bytes in upper-case hex; serves as the `hash` parameter and as ETag. */
  readonly hash: string;
}

/** What the documents are derived from; the registry is one. */
export interface KindSource {
  kinds(): readonly KindDefinition[];
  /** Rises whenever `kinds()` changes. */
  readonly generation: number;
}

/** Forms of the Swagger document. */
export type SwaggerForm = 'json' | 'protobuf';

interface Entry {
  readonly groupVersion: GroupVersion;
  readonly kinds: readonly KindDefinition[];
  file: OpenApiFile | undefined;
}

function fileOf(content: unknown): OpenApiFile {
  return fileOfBytes(Buffer.from(`${JSON.stringify(content)}\n`));
}

function fileOfBytes(bytes: Buffer): OpenApiFile {
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex').toUpperCase() };
}

function sameKinds(a: readonly KindDefinition[], b: readonly KindDefinition[]): boolean {
  return a.length === b.length && a.every((kind, i) => kind === b[i]);
}

/**
 * The OpenAPI documents of a server. Each is built when it is first asked for and kept until its own kinds change: a
 * new kind rebuilds the document of its group version alone.
 */
export class OpenApiDocuments {
  readonly #source: KindSource;
  readonly #info: OpenApiInfo | undefined;
  readonly #brand: Brand | undefined;
  readonly #prefix: string;
  #generation: number | undefined;
  #entries = new Map<string, Entry>();
  #index: OpenApiFile | undefined;
  #swagger: Partial<Record<SwaggerForm, OpenApiFile>> = {};
  #parts: readonly SwaggerPart[] = [];

  /** `brand` is a part of the media types; `prefix` is the path below which the server is mounted. */
  constructor(source: KindSource, info?: OpenApiInfo, brand?: Brand, prefix = '') {
    this.#prefix = prefix;
    this.#source = source;
    this.#info = info;
    this.#brand = brand;
  }

  /** Body of `/openapi/v3`. Builds every document, because their hashes are part of it. */
  index(): OpenApiFile {
    this.#refresh();
    const hashes = () =>
      [...this.#entries.values()].map((entry) => [entry.groupVersion, this.#file(entry).hash] as const);
    this.#index ??= fileOf(openApiV3Index(hashes(), this.#prefix));
    return this.#index;
  }

  /** The document behind a path of the index (`api/v1`, `apis/apps/v1`); undefined when there is none. */
  document(path: string): OpenApiFile | undefined {
    this.#refresh();
    const entry = this.#entries.get(path);
    return entry && this.#file(entry);
  }

  /**
   * Body of `/openapi/v2`: everything in one document, as JSON or in the protobuf form that kubectl asks for.
   *
   * @param parts those of other servers
   */
  swagger(form: SwaggerForm, parts: readonly SwaggerPart[] = []): OpenApiFile {
    this.#refresh();
    if (parts.length !== this.#parts.length || parts.some((part, i) => part !== this.#parts[i])) {
      this.#parts = parts;
      this.#swagger = {};
    }
    let file = this.#swagger[form];
    if (file === undefined) {
      // Different clients request the two forms, so the intermediate document is not kept.
      const own = openApiV2Document(this.#source.kinds(), this.#info, this.#brand);
      const document = parts.length === 0 ? own : mergeSwagger(own, parts);
      file = form === 'json' ? fileOf(document) : fileOfBytes(encodeSwagger(document));
      this.#swagger[form] = file;
    }
    return file;
  }

  #file(entry: Entry): OpenApiFile {
    entry.file ??= fileOf(openApiV3Document(entry.groupVersion, entry.kinds, this.#info, this.#brand));
    return entry.file;
  }

  #refresh(): void {
    if (this.#generation === this.#source.generation) return;
    this.#generation = this.#source.generation;
    this.#index = undefined;
    this.#swagger = {};
    const entries = new Map<string, Entry>();
    for (const { name, versions } of servedGroups(this.#source.kinds())) {
      for (const { version, kinds } of versions) {
        const groupVersion = { group: name, version };
        const path = documentPath(groupVersion);
        const known = this.#entries.get(path);
        entries.set(path, known && sameKinds(known.kinds, kinds) ? known : { groupVersion, kinds, file: undefined });
      }
    }
    this.#entries = entries;
  }
}
