import type { NetworkPlugin, NetworkRequest } from '@keelson/container-runtime';
import { NetworkError } from '../network-error.ts';
import { Attacher, loopbackType, type PluginHost, type Wanted } from './attacher.ts';
import { capabilityArgs } from './capability-args.ts';
import { NetworkFolder } from './network-folder.ts';
import type { JsonObject, NetworkList } from './network-list.ts';
import { pluginsReady, unready } from './readiness.ts';
import { machineInterfacesOf } from './result.ts';
import { setHairpin } from './set-hairpin.ts';

export interface CniNetworkOptions extends PluginHost {
  /** Folder of network configurations; the first usable one by name counts. */
  readonly confDir: string;
  /** Addresses for plugins that ask for them (capability `ipRanges`). */
  readonly podCidr?: string;
  /**
   * A bridge sends frames of a pod back to it: a pod reaches itself through a service. Only where the network is a
   * bridge.
   */
  readonly hairpin?: boolean;
}

/** The network that a folder of CNI configurations describes. Nothing is done before the first call. */
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
    for (const capability of unheard(found.list, args)) {
      logger.warn('no plugin of the network takes what the pod asks for', { capability, sandboxId });
    }
    return {
      list: found.list,
      capabilityArgs: args,
      async afterwards(result, signal) {
        if (!hairpin) return;
        await setHairpin(machineInterfacesOf(result), launch, signal).catch((err) =>
          logger.warn('hairpin mode was not set', { sandboxId, err }),
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

/** Wishes of the pod that no plugin hears. */
function unheard(list: NetworkList, args: JsonObject): string[] {
  return ['portMappings', 'bandwidth'].filter(
    (name) => args[name] !== undefined && !list.plugins.some(({ capabilities }) => capabilities.has(name)),
  );
}
