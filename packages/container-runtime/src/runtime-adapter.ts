import type { Schema } from '@keelson/core';
import { type DecodeTypeError, decoderOf, isDecodeTypeError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { ContainerEngine } from './container-runtime.ts';
import type { NetworkPlugin } from './network-plugin.ts';

/** What the node agent provides to every runtime adapter, independent of the adapter's options. */
export interface RuntimeContext {
  /** Name of the node. An adapter whose daemon serves several nodes separates their containers by this name. */
  readonly nodeName: string;
  /** Address of the node, which is the address of pods in the host network. Absent: the adapter detects it. */
  readonly nodeIp?: string;
  /**
   * Absolute path of the directory in which the adapter keeps its state. It belongs to this adapter on this node alone
   * and is the same after a restart of the agent. The adapter creates it when it needs it.
   */
  readonly stateDirectory: string;
  /** Directories with image archives and OCI layouts that the operator provides. They may not exist. */
  readonly imageDirectories: readonly string[];
  /** Connects pod sandboxes to the pod network. Absent: the runtime uses a network of its own or the host network. */
  readonly network?: NetworkPlugin;
  /** Mount point of the cgroup hierarchy. Absent: the agent manages no cgroups for pods. */
  readonly cgroupMountpoint?: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The default export of a runtime adapter package, which the node agent loads by the name or path that is configured as
 * its runtime. See docs/how-to/write-a-runtime-adapter.md.
 *
 * Call order: import of the module, validation of the configured options against `optionsSchema`, one call of `open`,
 * calls of the returned engine, one call of `engine.runtime[Symbol.asyncDispose]()`.
 *
 * Invariants:
 *
 * 1. Importing the module has no effect: no input or output, no timers, no registration.
 * 2. `open` receives only options that `optionsSchema` accepts, with the defaults of the schema filled in.
 * 3. `open` discovers the sandboxes and containers that earlier processes created for the same `stateDirectory` or the
 *    same daemon and node. The lists of the returned engine contain them from the first call on.
 * 4. `open` fails with `Unsupported` when the runtime cannot work on this machine, with `InvalidArgument` when options
 *    contradict each other. Every failure releases what the attempt has acquired.
 * 5. A daemon that does not answer is no failure of `open`: calls of the engine fail with `Unavailable` until the
 * daemon
 *    answers. An adapter waits for a daemon a bounded time only.
 * 6. The adapter uses the clock and the logger of the context, changes no process-wide state, and does not read the
 *    environment of the process for its configuration.
 * 7. At most one engine is open for a `stateDirectory` at a time. The agent ensures it.
 * 8. The engine fulfils the contract of `ContainerRuntime` and `ImageService`. `registerRuntimeConformance` of
 *    `@keelson/conformance` verifies it.
 */
export interface RuntimeAdapter<O = unknown> {
  /**
   * Name in logs and in the path of the state directory: lower-case letters, digits and `-`, beginning with a letter.
   * It equals `engine.runtime.name` unless another program behind the adapter determines that name.
   */
  readonly name: string;
  /** Schema of the options. Options outside the schema are rejected before `open` is called. */
  readonly optionsSchema: Schema<O>;
  /**
   * Opens the runtime.
   *
   * @throws RuntimeError `Unsupported`, `InvalidArgument`
   */
  open(options: O, context: RuntimeContext): Promise<ContainerEngine>;
}

/** Options of a runtime adapter that do not match its schema. The message is one sentence that names the option. */
export class RuntimeOptionsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RuntimeOptionsError';
  }
}

/** Whether a value, such as the default export of a module, has the form of a runtime adapter. */
export function isRuntimeAdapter(value: unknown): value is RuntimeAdapter {
  if (typeof value !== 'object' || value === null) return false;
  const { name, optionsSchema, open } = value as Partial<RuntimeAdapter>;
  return (
    typeof name === 'string' &&
    /^[a-z][a-z0-9-]*$/.test(name) &&
    optionsSchema?.node?.type === 'message' &&
    typeof open === 'function'
  );
}

/**
 * Validates options against the schema of an adapter.
 *
 * @returns the options with defaults filled in
 * @throws RuntimeOptionsError for an unknown option, a missing option, a wrong type, or a value out of range
 */
export function parseRuntimeOptions<O>(adapter: RuntimeAdapter<O>, options: unknown): O {
  const { name, optionsSchema } = adapter;
  try {
    const { value, errors, unknownFields } = decoderOf(optionsSchema)(options);
    const [unknown] = unknownFields;
    if (unknown !== undefined)
      throw new RuntimeOptionsError(`the runtime ${name} has no option ${unknown}${optionNames(optionsSchema)}`);
    const [error] = errors;
    if (error !== undefined)
      throw new RuntimeOptionsError(`the option ${error.field} of the runtime ${name}: ${error.message}`);
    return value;
  } catch (error) {
    if (isDecodeTypeError(error)) throw new RuntimeOptionsError(typeErrorText(name, error));
    throw error;
  }
}

function optionNames({ node }: Schema<unknown>): string {
  const names = node.type === 'message' ? Object.keys(node.fields) : [];
  return names.length === 0 ? '; it accepts no options' : `; its options are: ${names.join(', ')}`;
}

function typeErrorText(name: string, { path, expected, got }: DecodeTypeError): string {
  if (path === '') return `the options of the runtime ${name} must be an object, not ${got}`;
  return `the option ${path} of the runtime ${name} must be of type ${expected}, not ${got}`;
}
