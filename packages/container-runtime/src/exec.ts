import type { Duplex, Readable, Writable } from 'node:stream';
import type { CallOptions } from './call-options.ts';
import type { ContainerId } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/** A command whose output is collected. */
export interface ExecSyncRequest {
  /** Program and arguments, which are executed without a shell. */
  readonly command: readonly string[];
  /**
   * After this many milliseconds the command is killed and the call rejects with `DeadlineExceeded`; absent: no limit.
   */
  readonly execTimeoutMs?: number;
  /** Maximum bytes of each stream in the result; further output is discarded. Default 16 MiB. */
  readonly maxOutputBytes?: number;
}

/** The output and the exit code of a command. */
export interface ExecSyncResult {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Exit code of the command; 128 + signal number if a signal ended the command. */
  readonly exitCode: number;
}

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** Selects the streams of a process that are connected to the caller. */
export interface StreamRequest {
  readonly stdin: boolean;
  readonly stdout: boolean;
  /** Whether standard error is requested; always false with a terminal, which combines it with standard output. */
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** A command whose streams are connected to the caller. */
export interface ExecRequest extends StreamRequest {
  readonly command: readonly string[];
}

/**
 * Streams of a running process. Destroying all streams detaches from the process. This ends a process that was started
 * by `exec`, but never a container.
 */
export interface ProcessStreams {
  /** Standard input of the process; present if requested. When the caller ends it, the process reads end of file. */
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
  /** Sets the size of the terminal; present if the process has a terminal. */
  resize?(size: TerminalSize): void;
  /**
   * After `exec`, resolves when the process has ended; after `attach`, when the container has exited or the caller has
   * detached.
   */
  readonly ended: Promise<{ readonly exitCode: number }>;
  /** Destroys all streams, which detaches from the process. Idempotent. */
  close(): void;
}

/**
 * Calls that connect to the streams of processes and to ports of a pod. A method is absent when the capability of the
 * same name is false.
 */
export interface RuntimeStreaming {
  exec?(id: ContainerId, request: ExecRequest, options?: CallOptions): Promise<ProcessStreams>;
  attach?(id: ContainerId, request: StreamRequest, options?: CallOptions): Promise<ProcessStreams>;
  /** Opens a connection to a TCP port of a pod. */
  portForward?(id: SandboxId, port: number, options?: CallOptions): Promise<Duplex>;
}
