import type { ContainerConfig, ContainerEngine, ContainerId, RuntimeCapabilities } from '@keelson/container-runtime';

/** What a container of a case does; the harness says how, so that scripted runtimes can take part. */
export type Intent =
  /** Runs until it is stopped, and ends at once when asked to. */
  | { readonly kind: 'run' }
  /** Ends by itself. */
  | { readonly kind: 'exit'; readonly code: number; readonly afterMs?: number }
  /** Runs, and takes no notice of the stop signal. */
  | { readonly kind: 'stubborn' }
  /** Its process cannot be started. */
  | { readonly kind: 'cannotStart' };

export type Program = Pick<ContainerConfig, 'image' | 'command' | 'args'>;

/** An engine that a case may do anything with. */
export interface OpenedEngine {
  readonly engine: ContainerEngine;
  /** Removes everything, closes the engine, and throws if anything of it is left on the machine. */
  dispose(): Promise<void>;
}

/** How the suite gets at a runtime. A missing hook turns the cases that need it into visible skips. */
export interface RuntimeHarness<O extends OpenedEngine = OpenedEngine> {
  /** Part of every test title. */
  readonly name: string;
  /**
   * What the opened engines must declare; the first case compares. Cases for abilities that are not there are skipped.
   */
  readonly capabilities: RuntimeCapabilities;
  /** How many cases run at once; default all. */
  readonly concurrency?: number;
  /** An engine without sandboxes, that can run {@link program} at once. */
  open(): Promise<O>;
  program(intent: Intent): Program;
  /** Resolves when the started program has come so far that it behaves as intended; absent: it does from the start. */
  settled?(opened: O, id: ContainerId, intent: Intent): Promise<void>;
  /** A program that runs a POSIX shell script; the shell has the usual tools. */
  shell?(script: string): Program;
  /** A program whose arguments reach it as they are; it must be `printf` or something that behaves so. */
  printf?(...args: string[]): Program;
  /** Closes the engine and opens another on the same data; the argument must not be used any more. */
  reopen?(opened: O): Promise<O>;
  /** Empty folder on the machine, removed by the harness. */
  scratch(opened: O): Promise<string>;
  /** A reference that no source has. */
  readonly missingImage: string;
  /** A reference that can be pulled; its shell is `/bin/sh`. */
  readonly pullableImage?: string;
  /** A reference that is always there. */
  readonly builtinImage?: string;
  /** Present when pods have the network of the machine. */
  readonly sharesHostNetwork?: true;
  /** User and group, other than the runtime's, that a container may run as. */
  readonly otherUser?: { readonly uid: number; readonly gid: number };
}

/** Hooks and capabilities that a case cannot do without. */
export type RuntimeRequirement =
  | 'shell'
  | 'printf'
  | 'reopen'
  | 'pullableImage'
  | 'builtinImage'
  | 'otherUser'
  | 'sharesHostNetwork'
  | {
      [K in keyof RuntimeCapabilities]: RuntimeCapabilities[K] extends boolean ? K : never;
    }[keyof RuntimeCapabilities];

/** The requirements that a harness does not meet. */
export function missingRuntimeRequirements(
  harness: RuntimeHarness,
  requires: readonly RuntimeRequirement[] = [],
): RuntimeRequirement[] {
  return requires.filter((need) => {
    const hook = need as keyof RuntimeHarness;
    if (need in harness.capabilities) return !harness.capabilities[need as keyof RuntimeCapabilities];
    return harness[hook] === undefined;
  });
}
