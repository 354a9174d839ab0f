import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MachineError, UsageError } from '@keelson/agent';
import {
  type ContainerEngine,
  isRuntimeAdapter,
  isRuntimeError,
  parseRuntimeOptions,
  type RuntimeAdapter,
  type RuntimeContext,
  RuntimeOptionsError,
} from '@keelson/container-runtime';

/** Packages of the runtimes that come with Keelson, by the name that selects them. */
const packages: Readonly<Record<string, string>> = {
  process: '@keelson/runtime-process',
  oci: '@keelson/runtime-oci',
  engine: '@keelson/runtime-engine',
  cri: '@keelson/runtime-cri',
};

/** A runtime adapter, its options, and the settings that selected them. */
export interface AdapterRequest {
  /**
   * `process`, `oci`, `engine`, `cri`, the name of a package, or the path of a module (absolute or with a leading dot).
   */
  readonly adapter: string;
  /** Options in the form of the adapter's schema; not yet validated. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The setting that selected the adapter, for error messages: an option or an environment variable. */
  readonly source: string;
  /** The setting that contains the options, for error messages; default: `source`. */
  readonly optionsSource?: string;
}

function specifierOf(name: string): string {
  if (name.startsWith('.') || isAbsolute(name)) return pathToFileURL(resolve(name)).href;
  return Object.hasOwn(packages, name) ? (packages[name] ?? name) : name;
}

/**
 * Imports a runtime adapter.
 *
 * @throws UsageError when the module is not installed or does not export a runtime adapter
 */
export async function loadRuntimeAdapter({
  adapter: name,
  source,
}: Pick<AdapterRequest, 'adapter' | 'source'>): Promise<RuntimeAdapter> {
  const specifier = specifierOf(name);
  let module: { readonly default?: unknown };
  try {
    module = (await import(specifier)) as { readonly default?: unknown };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const names = Object.keys(packages).join(', ');
    throw new UsageError(
      `${source}: the runtime adapter ${name} is not installed; install the package or choose one of ${names}`,
    );
  }
  if (!isRuntimeAdapter(module.default))
    throw new UsageError(`${source}: ${name} does not export a runtime adapter by default`);
  return module.default;
}

/**
 * Loads an adapter, validates its options and opens its runtime.
 *
 * @param contextOf creates the context of the adapter
 * @throws UsageError for an adapter that cannot be loaded and for options that it does not accept
 * @throws MachineError when the runtime cannot work on this machine
 */
export async function openAdapter(
  request: AdapterRequest,
  contextOf: (adapter: RuntimeAdapter) => RuntimeContext,
): Promise<ContainerEngine> {
  const adapter = await loadRuntimeAdapter(request);
  const options = checkedOptions(adapter, request);
  try {
    return await adapter.open(options, contextOf(adapter));
  } catch (error) {
    if (isRuntimeError(error, 'Unsupported'))
      throw new MachineError(`the runtime ${adapter.name} cannot be used: ${error.message}`);
    throw error;
  }
}

function checkedOptions(adapter: RuntimeAdapter, { options, source, optionsSource = source }: AdapterRequest): unknown {
  try {
    return parseRuntimeOptions(adapter, options);
  } catch (error) {
    if (error instanceof RuntimeOptionsError) throw new UsageError(`${optionsSource}: ${error.message}`);
    throw error;
  }
}
