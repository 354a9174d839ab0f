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
