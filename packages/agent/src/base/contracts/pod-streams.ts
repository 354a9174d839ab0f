import type { Duplex } from 'node:stream';
import type { ExecRequest, ExecSyncResult, ProcessStreams, StreamRequest } from '@keelson/container-runtime';

/** A pod by its name. */
export interface PodAddress {
  readonly namespace: string;
  readonly pod: string;
  /** The pod's own, or that of its copy at the API; undefined = whichever has the name. */
  readonly uid: string | undefined;
}

export interface ContainerAddress extends PodAddress {
  readonly container: string;
}

/**
 * Ways into the pods of the node. What is asked about is looked for at once; what that gives begins the stream, so that
 * a server can say no before it says yes to a protocol.
 *
 * All throw `PodQueryError`: `NotFound`, `Invalid` when it does not run, `Unsupported` when the runtime has no such
 * thing.
 */
export interface PodStreams {
  exec(container: ContainerAddress, request: ExecRequest): () => Promise<ProcessStreams>;
  attach(container: ContainerAddress, request: StreamRequest): () => Promise<ProcessStreams>;
  /** Connections to TCP ports of the pod, any number of them. */
  portForward(pod: PodAddress): (port: number) => Promise<Duplex>;
  /** Runs a command to its end. */
  run(container: ContainerAddress, command: readonly string[], signal: AbortSignal): Promise<ExecSyncResult>;
}
