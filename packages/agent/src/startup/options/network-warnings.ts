import type { GivenValues } from '@keelson/core/internal';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import type { OptionName } from './option-table.ts';

/** The reason why each of these options has no effect in this configuration; undefined when it has an effect. */
function* reasons({
  network,
  node,
  api,
  runtime,
}: AgentConfig): Iterable<readonly [name: OptionName, because: string | undefined]> {
  const { plugin } = network;
  const remote = runtime.kind === 'cri';
  const noPlugin = plugin === '' ? 'without --network-plugin' : undefined;
  const none = remote ? 'with --container-runtime-endpoint: the runtime has a network of its own' : noPlugin;
  yield ['network-plugin', remote ? none : undefined];
  yield ['cni-bin-dir', none];
  yield ['hairpin-mode', none];
  yield [
    'cni-conf-dir',
    none ?? (plugin === 'bridge' ? 'with --network-plugin=bridge, which needs no configuration' : undefined),
  ];
  yield [
    'network-plugin-mtu',
    none ?? (plugin === 'cni' ? 'with --network-plugin=cni: its configuration has the MTU' : undefined),
  ];
  yield ['pod-cidr', api === undefined ? undefined : "with an API server: the node's spec.podCIDR is used"];
  const { provider } = node.cloud;
  const noCloud = provider === '' ? 'without --cloud-provider' : undefined;
  yield ['cloud-config', provider === 'external' ? 'with --cloud-provider=external' : noCloud];
  if (!network.makeIptablesUtilChains) {
    for (const name of ['iptables-drop-bit', 'iptables-masquerade-bit'] as const)
      yield [name, 'without --make-iptables-util-chains'];
  }
}

/** Warnings about options that were given and have no effect, or another effect, in combination with the others. */
export function networkWarnings(config: AgentConfig, given: GivenValues): string[] {
  const warnings: string[] = [];
  for (const [name, because] of reasons(config)) {
    if (because !== undefined && given.has(name)) warnings.push(`--${name} has no effect ${because}`);
  }
  if (
    config.network.plugin === 'cni' &&
    config.network.hairpinMode === 'promiscuous-bridge' &&
    given.has('hairpin-mode')
  ) {
    warnings.push('--hairpin-mode=promiscuous-bridge needs --network-plugin=bridge; hairpin-veth is used');
  }
  return warnings;
}
