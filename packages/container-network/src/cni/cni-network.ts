import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { NetworkPlugin, NetworkRequest } from '@keelson/container-runtime';
import { NetworkError } from '../network-error.ts';
import { Attacher, loopbackType, type PluginHost, type Wanted } from './attacher.ts';
import { capabilityArgs } from './capability-args.ts';
import { NetworkFolder } from './network-folder.ts';
import type { JsonObject, NetworkList } from './network-list.ts';
import { programPath } from './program-path.ts';
import { pluginsReady, unready } from './readiness.ts';
import { machineInterfacesOf } from './result.ts';

export interface CniNetworkOptions extends PluginHost {
  /** Folder of network configurations. The first valid one by name is used. */
  readonly confDir: string;
  /** Addresses for plugins with the capability `ipRanges`. */
  readonly podCidr?: string;
  /** Enables hairpin mode on bridge ports, so that a pod reaches itself through a service. Only for bridge networks. */
  readonly hairpin?: boolean;
}

/** The network of a folder of CNI configurations. The folder is read on the first call. */
export function createCniNetwork(options: CniNetworkOptions): NetworkPlugin {
  const { binDirs, logger, hairpin = false, launch } = options;
  const attacher = new Attacher(options);
  const folder = new NetworkFolder(options);
  let { podCidr } = options;
  const wanted = async (request: NetworkRequest): Promise<Wanted> => {
    const found = await folder.current();
    if ('problem' in found) throw new NetworkError('Unavailable', found.problem);
    const args = capabilityArgs(request, podCidr);
    const { sandboxId } = request;
    for (const capability of unsupported(found.list, args)) {
      logger.warn('no plugin of the network supports a capability that the pod requires', { capability, sandboxId });
    }
    return {
      list: found.list,
      capabilityArgs: args,
      async afterwards(result, signal) {
        if (!hairpin) return;
        await setHairpin(machineInterfacesOf(result), launch, signal).catch((err) =>
          logger.warn('failed to set hairpin mode', { sandboxId, err }),
        );
      },
    };
  };
  return {
    name: 'cni',
    async status() {
      const found = await folder.current();
      if ('problem' in found) return unready(found.problem);
      return pluginsReady([loopbackType], binDirs);
    },
    add: (request, callOptions) => attacher.add(request, () => wanted(request), callOptions),
    remove: (which, callOptions) => attacher.remove(which, callOptions),
    check: (which, callOptions) => attacher.check(which, callOptions),
    updateConfig(config) {
      podCidr = config.podCidr ?? podCidr;
    },
    sweep: (known, callOptions) => attacher.sweep(known, callOptions),
  };
}

/** Capabilities that the pod requires and no plugin declares. */
function unsupported(list: NetworkList, args: JsonObject): string[] {
  return ['portMappings', 'bandwidth'].filter(
    (name) => args[name] !== undefined && !list.plugins.some(({ capabilities }) => capabilities.has(name)),
  );
}

const run = promisify(execFile);

/** Script that enables hairpin mode on interfaces. Interfaces that are not ports of a bridge are skipped. */
const script =
  'for name; do file=/sys/class/net/$name/brport/hairpin_mode; if [ -e "$file" ]; then echo 1 > "$file" || exit; fi; done';

/** Enables hairpin mode on bridge ports. `launch` is the command line prefix, as for plugins. */
async function setHairpin(
  interfaces: readonly string[],
  launch: readonly string[] = [],
  signal?: AbortSignal,
): Promise<void> {
  if (interfaces.length === 0) return;
  const [program = 'sh', ...words] = [...launch, 'sh', '-c', script, 'sh', ...interfaces];
  await run(program, words, { env: { PATH: programPath }, ...(signal && { signal }) });
}
