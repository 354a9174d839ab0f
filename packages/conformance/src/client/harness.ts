import type { ApiClient, KubeObject, ResourceClient } from '@keelson/core';
import type { ConformanceCase } from '../suite/conformance-suite.ts';
import type { PartObject } from './suite-kinds.ts';

/** A client of a server without objects, except those that every server creates. */
export interface OpenedClient {
  readonly client: ApiClient;
  /** Two namespaces that exist, in byte order. */
  readonly namespaces: readonly [string, string];
  /** Warnings that the client has received, oldest first. */
  readonly warnings?: readonly string[];
  /** Compacts the history of the server up to now. */
  forgetHistory?(): Promise<void>;
  dispose(): Promise<void>;
}

/** Access of the suite to a client. The server must serve `clientSuiteKinds`. */
export interface ClientHarness {
  /** Part of every test title. */
  readonly name: string;
  /** Optional abilities of opened clients. */
  readonly offers: readonly ClientRequirement[];
  open(): Promise<OpenedClient>;
}

/**
 * - `warnings`: the client reports warnings of the server.
 * - `forgetHistory`: the harness can compact the history of the server.
 * - `unknownFields`: the client sends fields that the kind does not declare, as JSON clients do.
 */
export type ClientRequirement = 'warnings' | 'forgetHistory' | 'unknownFields';

/** The context of a running case. */
export interface ClientCaseContext {
  readonly client: ApiClient;
  readonly namespaces: readonly [string, string];
  /** Client for the objects of the kind `Part` in the first namespace. */
  readonly parts: ResourceClient<PartObject>;
  /** Client for the objects of the kind `Part` in all namespaces. */
  readonly allParts: ResourceClient<PartObject>;
  /** Client for the objects of the cluster-scoped kind of the suite. */
  readonly zones: ResourceClient<KubeObject & { spec?: { area?: string } }>;
  readonly warnings: readonly string[];
  forgetHistory(): Promise<void>;
  /** Returns an object of the kind `Part` for a create; nothing is sent. */
  part(name: string, spec?: PartObject['spec'], metadata?: PartObject['metadata']): PartObject;
}

/** One statement about every client. */
export type ClientCase = ConformanceCase<ClientCaseContext, ClientRequirement>;
