import type { ApiClient, KubeObject, ResourceClient } from '@keelson/core';
import type { ConformanceCase } from '../suite/conformance-suite.ts';
import type { PartObject } from './suite-kinds.ts';

/** A client of a server that holds nothing but what every server holds. */
export interface OpenedClient {
  readonly client: ApiClient;
  /** Two namespaces that exist, in byte order. */
  readonly namespaces: readonly [string, string];
  /** Remarks the client was told, oldest first. */
  readonly warnings?: readonly string[];
  /** Makes the server lose the history of everything until now. */
  forgetHistory?(): Promise<void>;
  dispose(): Promise<void>;
}

/** How the suite gets at a client. The server must know `clientSuiteKinds`. */
export interface ClientHarness {
  /** Part of every test title. */
  readonly name: string;
  /** What an opened client offers beside the necessary. */
  readonly offers: readonly ClientRequirement[];
  open(): Promise<OpenedClient>;
}

/**
 * - `warnings`: the client tells the server's remarks.
 * - `forgetHistory`: the server can be made to forget.
 * - `unknownFields`: the client sends fields that the kind does not declare, as JSON clients do.
 */
export type ClientRequirement = 'warnings' | 'forgetHistory' | 'unknownFields';

/** What a running case has at hand. */
export interface ClientCaseContext {
  readonly client: ApiClient;
  readonly namespaces: readonly [string, string];
  /** Parts of the first namespace. */
  readonly parts: ResourceClient<PartObject>;
  /** Parts of all namespaces. */
  readonly allParts: ResourceClient<PartObject>;
  /** Cluster-scoped objects. */
  readonly zones: ResourceClient<KubeObject & { spec?: { area?: string } }>;
  readonly warnings: readonly string[];
  forgetHistory(): Promise<void>;
  /** A part to be created. */
  part(name: string, spec?: PartObject['spec'], metadata?: PartObject['metadata']): PartObject;
}

/** One statement about every client. */
export type ClientCase = ConformanceCase<ClientCaseContext, ClientRequirement>;
