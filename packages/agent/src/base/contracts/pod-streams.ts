import type { Duplex } from 'node:stream';
import type { ExecRequest, ExecSyncResult, ProcessStreams, StreamRequest } from '@keelson/container-runtime';

/** A pod by its name. */
export interface PodAddress {
  readonly namespace: string;
  readonly pod: string;
  /** The UID of the pod or of its mirror pod; undefined = any pod of that name. */
  readonly uid: string | undefined;
}

export interface ContainerAddress extends PodAddress {
  readonly container: string;
}

/**
 * Streams into the pods of the node. Each method resolves its subject immediately; the returned function opens the
 * stream, so that a server can reject a request before it upgrades the connection.
 *
 * All methods throw `PodQueryError`: `NotFound`, `Invalid` when the subject does not run, `Unsupported` when the
 * runtime does not support the operation.
 */
export interface PodStreams {
  exec(container: ContainerAddress, request: ExecRequest): () => Promise<ProcessStreams>;
  attach(container: ContainerAddress, request: StreamRequest): () => Promise<ProcessStreams>;
  /** Opens any number of connections to TCP ports of the pod. */
  portForward(pod: PodAddress): (port: number) => Promise<Duplex>;
  /** Runs a command and waits until it exits. */
  run(container: ContainerAddress, command: readonly string[], signal: AbortSignal): Promise<ExecSyncResult>;
}
