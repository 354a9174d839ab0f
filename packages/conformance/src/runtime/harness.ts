import type {
  ContainerConfig,
  ContainerEngine,
  ContainerId,
  RuntimeCapabilities,
  SandboxId,
} from '@keelson/container-runtime';

/** Behaviour of a container; the harness provides a program for it, so that scripted runtimes are supported. */
export type Intent =
  /** Runs until the stop signal and ends immediately then. */
  | { readonly kind: 'run' }
  /** Exits without a signal. */
  | { readonly kind: 'exit'; readonly code: number; readonly afterMs?: number }
  /** Runs and ignores the stop signal. */
  | { readonly kind: 'stubborn' }
  /** The process of the container cannot be started. */
  | { readonly kind: 'cannotStart' };

/** The program that a container of a case runs. */
export type Program = Pick<ContainerConfig, 'image' | 'command' | 'args'>;

/** A ready sandbox for containers of cases that prove nothing about sandboxes. */
export interface CommonSandbox {
  readonly id: SandboxId;
  /** Absent for runtimes without logs. */
  readonly logDirectory?: string;
}

/** An engine for one case. */
export interface OpenedEngine {
  readonly engine: ContainerEngine;
  /** Only of {@link RuntimeHarness.openCommon}. */
  readonly common?: CommonSandbox;
  /** Removes everything, closes the engine, and throws when something remains on the machine. */
  dispose(): Promise<void>;
}

/** Access of the suite to a runtime. Cases that need a missing hook are registered as skipped. */
export interface RuntimeHarness<O extends OpenedEngine = OpenedEngine> {
  /** Part of every test title. */
  readonly name: string;
  /**
   * Capabilities that opened engines must declare; the first case compares them. Cases that need an absent capability
   * are skipped.
   */
  readonly capabilities: RuntimeCapabilities;
  /** Number of cases that run concurrently; default all. */
  readonly concurrency?: number;
  /** Pods that the load cases start concurrently, for runtimes whose containers cost much; default 30. */
  readonly loadPods?: number;
  /** Lines of the case about a log that is complete at the exit, for engines that lose output; default 20,000. */
  readonly logLines?: number;
  /** Opens an engine without sandboxes that can run {@link program} without further preparation. */
  open(): Promise<O>;
  /**
   * Returns an engine without containers, with a sandbox that earlier cases have used and `dispose` leaves to later
   * ones, for runtimes whose sandboxes cost much. When absent, every case creates its sandboxes.
   */
  openCommon?(): Promise<O>;
  program(intent: Intent): Program;
  /**
   * Resolves when the started program behaves as intended. When absent, programs behave as intended from their start.
   */
  settled?(opened: O, id: ContainerId, intent: Intent): Promise<void>;
  /** Returns a program that runs a POSIX shell script with the usual tools. */
  shell?(script: string): Program;
  /** Returns a program that behaves like `printf` and receives its arguments unchanged. */
  printf?(...args: string[]): Program;
  /** Closes the engine and opens another on the same data; the argument must not be used afterwards. */
  reopen?(opened: O): Promise<O>;
  /**
   * True when a log is complete, for an engine that reports an exit before it has written the last output (containerd).
   * When absent, the log of a container must be complete when the container is reported as exited.
   */
  logIsComplete?(opened: O, path: string): Promise<boolean>;
  /** Creates an empty folder on the machine, which the harness removes. */
  scratch(opened: O): Promise<string>;
  /** An image reference that no registry contains. */
  readonly missingImage: string;
  /** An image reference that can be pulled; the image contains `/bin/sh`. */
  readonly pullableImage?: string;
  /** An image reference that is always present. */
  readonly builtinImage?: string;
  /** Present when pods share the network of the machine. */
  readonly sharesHostNetwork?: true;
  /** User and group, other than the runtime's, that a container may run as. */
  readonly otherUser?: { readonly uid: number; readonly gid: number };
}

/** Hooks and capabilities that a case can require. */
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

/** Returns the requirements that a harness does not meet. */
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
