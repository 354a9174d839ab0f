import type { Duplex, Readable, Writable } from 'node:stream';
import type { CallOptions } from './call-options.ts';
import type { ContainerId } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/** A command whose output is collected. */
export interface ExecSyncRequest {
  /** No shell. */
  readonly command: readonly string[];
  /**
   * After this many milliseconds the command is killed and the call rejects with `DeadlineExceeded`; absent: no limit.
   */
  readonly execTimeoutMs?: number;
  /** Bytes kept of each stream, the rest is read and dropped; default 16 MiB. */
  readonly maxOutputBytes?: number;
}

/** The output and the exit code of a command. */
export interface ExecSyncResult {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** 128 + number for a command that a signal ended. */
  readonly exitCode: number;
}

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** The streams of a process that the caller requests. */
export interface StreamRequest {
  readonly stdin: boolean;
  readonly stdout: boolean;
  /** Always false with `tty`. */
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** A command whose streams are connected to the caller. */
export interface ExecRequest extends StreamRequest {
  readonly command: readonly string[];
}

/**
 * Ends of a running process. Destroying all of them detaches; it ends a process that was started by `exec`, never the
 * container.
 */
export interface ProcessStreams {
  /** Present if asked for; ending it is end of file for the process. */
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
  /** Present with a terminal. */
  resize?(size: TerminalSize): void;
  /**
   * Resolves when the process has ended (exec), or when the container has exited or the caller has detached (attach).
   */
  readonly ended: Promise<{ readonly exitCode: number }>;
  /** Detaches from all streams. Idempotent. */
  close(): void;
}

/**
 * Streams to processes and ports of a pod. A runtime without one of them omits the method, and its capabilities state
 * it.
 */
export interface RuntimeStreaming {
  exec?(id: ContainerId, request: ExecRequest, options?: CallOptions): Promise<ProcessStreams>;
  attach?(id: ContainerId, request: StreamRequest, options?: CallOptions): Promise<ProcessStreams>;
  /** A connection to a TCP port inside the pod. */
  portForward?(id: SandboxId, port: number, options?: CallOptions): Promise<Duplex>;
}
