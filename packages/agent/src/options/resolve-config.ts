import { canonicalQuantity } from '@keelson/core';
import type { AgentConfig, AllowedSources, ResourceAmounts, RuntimeChoice } from '../contracts/agent-config.ts';
import { runtimeWarnings } from './check/check-runtime.ts';
import { networkWarnings } from './check/network-warnings.ts';
import { checkOptions } from './check-options.ts';
import { gateWarnings, resolveGates } from './feature-gates.ts';
import type { AgentOptions } from './option-table.ts';
import type { ParsedOptions } from './parse-options.ts';
import { refuseNotYet } from './refuse-not-yet.ts';

/** What the configuration needs to know of the machine. */
export interface HostFacts {
  hostname(): string;
  fileExists(path: string): boolean;
}

/** A configuration, and what whoever started the agent should hear of it. */
export interface ResolvedConfig {
  readonly config: AgentConfig;
  readonly warnings: readonly string[];
}

const given = (text: string): string | undefined => (text === '' ? undefined : text);

function runtimeChoice(values: AgentOptions, isGiven: (name: keyof AgentOptions) => boolean): RuntimeChoice {
  if (values['container-runtime'] === 'runtime-b') {
    return { kind: 'oci', path: given(values['runtime-b-path']), supervisorEndpoint: values['runtime-b-api-endpoint'] };
  }
  const endpoint = values['container-runtime-endpoint'];
  if (isGiven('container-runtime-endpoint')) {
    return { kind: 'cri', endpoint, imageEndpoint: given(values['image-service-endpoint']) ?? endpoint };
  }
  if (isGiven('runtime-a-endpoint')) return { kind: 'engine', endpoint: values['runtime-a-endpoint'], shimEndpoint: endpoint };
  return { kind: 'default', engineEndpoint: values['runtime-a-endpoint'], shimEndpoint: endpoint };
}

/** A file given is used whether it exists or not; that of the default only when it does, else the agent runs alone. */
function clusterconfig({ values, given: names }: ParsedOptions, machine: HostFacts): string | undefined {
  const path = values.clusterconfig;
  if (values.runonce || path === '') return undefined;
  return names.has('clusterconfig') || machine.fileExists(path) ? path : undefined;
}

/** The bridge has a name of its own in command lines of this field. */
function networkPluginOf(word: string): AgentConfig['network']['plugin'] {
  if (word === 'kubenet') return 'bridge';
  return word as AgentConfig['network']['plugin'];
}

function amounts(map: ReadonlyMap<string, string>): ResourceAmounts {
  return Object.fromEntries([...map].map(([name, amount]) => [name, canonicalQuantity(amount)]));
}

/**
 * Makes the agent's configuration of its options.
 *
 * @throws UsageError when options contradict each other, are out of range, or ask for what does not exist yet
 */
export function resolveConfig(parsed: ParsedOptions, machine: HostFacts): ResolvedConfig {
  const { values } = parsed;
  const gates = resolveGates(values['feature-gates']);
  checkOptions({ values, given: parsed.given, gates });
  refuseNotYet(values);
  const api = clusterconfig(parsed, machine);
  const config: AgentConfig = Object.freeze({
    nodeName: (values['hostname-override'].trim() || machine.hostname().trim()).toLowerCase(),
    rootDir: values['root-dir'],
    api:
      api === undefined
        ? undefined
        : {
            clusterconfig: api,
            qps: values['cluster-api-qps'],
            burst: values['cluster-api-burst'],
            contentType: values['cluster-api-content-type'],
            chaosChance: values['chaos-chance'],
          },
    sources: {
      manifestPath: given(values['pod-manifest-path']),
      manifestUrl: given(values['manifest-url']),
      manifestUrlHeaders: values['manifest-url-header'],
      fileCheckMs: values['file-check-frequency'],
      httpCheckMs: values['http-check-frequency'],
      runOnce: values.runonce,
      hostNetwork: values['host-network-sources'] as AllowedSources,
      hostPid: values['host-pid-sources'] as AllowedSources,
      hostIpc: values['host-ipc-sources'] as AllowedSources,
      checkpointPath: given(values['bootstrap-checkpoint-path']),
    },
    server: {
      enabled: values['enable-server'] && !values.runonce,
      address: values.address,
      port: values.port,
      readOnlyPort: values.runonce ? 0 : values['read-only-port'],
      healthzAddress: values['healthz-bind-address'],
      healthzPort: values.runonce ? 0 : values['healthz-port'],
      debuggingHandlers: values['enable-debugging-handlers'],
      tlsCertFile: given(values['tls-cert-file']),
      tlsPrivateKeyFile: given(values['tls-private-key-file']),
      certDir: values['cert-dir'],
      anonymousAuth: values['anonymous-auth'],
      clientCaFile: given(values['client-ca-file']),
    },
    runtime: runtimeChoice(values, (name) => parsed.given.has(name)),
    runtimeRequestTimeoutMs: values['runtime-request-timeout'],
    isolatePids: values['runtime-a-disable-shared-pid'],
    images: {
      infraImage: values['pod-infra-container-image'],
      pullProgressDeadlineMs: values['image-pull-progress-deadline'],
      serializePulls: values['serialize-image-pulls'],
      registryQps: values['registry-qps'],
      registryBurst: values['registry-burst'],
      gcHighPercent: values['image-gc-high-threshold'],
      gcLowPercent: values['image-gc-low-threshold'],
      minimumTtlMs: values['minimum-image-ttl-duration'],
      cloudAConfig: given(values['cloud-a-container-registry-config']),
      cloudBKey: given(values['cloud-b-json-key']),
    },
    network: {
      plugin: networkPluginOf(values['network-plugin']),
      cniBinDir: values['cni-bin-dir'],
      cniConfDir: values['cni-conf-dir'],
      mtu: values['network-plugin-mtu'],
      hairpinMode: values['hairpin-mode'] as AgentConfig['network']['hairpinMode'],
      podCidr: values['pod-cidr'],
      makeIptablesUtilChains: values['make-iptables-util-chains'],
      iptablesDropBit: values['iptables-drop-bit'],
      iptablesMasqueradeBit: values['iptables-masquerade-bit'],
    },
    dns: {
      servers: values['cluster-dns'],
      domain: values['cluster-domain'].replace(/\.$/, ''),
      resolvConf: values['resolv-conf'],
    },
    node: {
      ip: given(values['node-ip']),
      labels: Object.fromEntries(values['node-labels']),
      taints: values['register-with-taints'],
      providerId: given(values['provider-id']),
      register: values['register-node'],
      statusUpdateMs: values['node-status-update-frequency'],
      enableControllerAttachDetach: values['enable-controller-attach-detach'],
      cloud: { provider: values['cloud-provider'], configPath: given(values['cloud-config']) },
    },
    limits: {
      maxPods: values['max-pods'],
      podsPerCore: values['pods-per-core'],
      allowPrivileged: values['allow-privileged'],
    },
    allowedUnsafeSysctls: values['experimental-allowed-unsafe-sysctls'],
    clusterReserved: amounts(values['cluster-reserved']),
    systemReserved: amounts(values['system-reserved']),
    syncMs: values['sync-frequency'],
    volumeStatsMs: values['volume-stats-agg-period'],
    volumePluginDir: values['volume-plugin-dir'],
    mounterPath: given(values['experimental-mounter-path']),
    checkNodeCapabilities: values['experimental-check-node-capabilities-before-mount'],
    containerized: values.containerized,
    seccompRoot: values['seccomp-profile-root'],
    cpuCfsQuota: values['cpu-cfs-quota'],
    events: { qps: values['event-qps'], burst: values['event-burst'] },
    gates,
    process: {
      lockFile: given(values['lock-file']),
      exitOnLockContention: values['exit-on-lock-contention'],
      maxOpenFiles: values['max-open-files'],
      oomScoreAdj: values['oom-score-adj'],
      protectKernelDefaults: values['protect-kernel-defaults'],
      reallyCrash: values['really-crash-for-testing'],
    },
  });
  return {
    config,
    warnings: [
      ...parsed.warnings,
      ...gateWarnings(gates),
      ...runtimeWarnings(values['container-runtime'], parsed.given),
      ...networkWarnings(config, parsed.given),
    ],
  };
}
