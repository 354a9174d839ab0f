import { canonicalQuantity } from '@keelson/core';
import type { AgentConfig, AllowedSources, ResourceAmounts, RuntimeChoice } from '../../base/config/agent-config.ts';
import { accessWarnings, checkAccess } from './check-access.ts';
import { cgroupWarnings } from './check-cgroups.ts';
import { checkOptions, credentialWarnings, rotationGate } from './check-options.ts';
import { runtimeWarnings } from './check-runtime.ts';
import { servingWarnings } from './check-serving.ts';
import { withConfigFile, withFileValues } from './config-file.ts';
import { evictionConfig, evictionWarnings } from './eviction-config.ts';
import { gateWarnings, resolveGates } from './feature-gates.ts';
import { networkWarnings } from './network-warnings.ts';
import type { AgentOptions } from './option-table.ts';
import { deprecationWarnings, type ParsedOptions } from './parse-options.ts';
import { resolveCgroups } from './resolve-cgroups.ts';

/** Facts about the machine that the configuration depends on. */
export interface HostFacts {
  hostname(): string;
  fileExists(path: string): boolean;
  /** Reads the file of --config; when absent, the option is rejected. */
  readFile?(path: string): Buffer;
}

/** A configuration, and the warnings for the user. */
export interface ResolvedConfig {
  readonly config: AgentConfig;
  /** The effective options, including those of the file of --config. */
  readonly values: AgentOptions;
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
  if (isGiven('runtime-a-endpoint'))
    return { kind: 'engine', endpoint: values['runtime-a-endpoint'], shimEndpoint: endpoint };
  return { kind: 'default', engineEndpoint: values['runtime-a-endpoint'], shimEndpoint: endpoint };
}

/**
 * Returns the path of the client configuration. A path that is given is used even when the file does not exist; the
 * default path only when the file exists. Otherwise the agent runs without an API server.
 */
function clusterconfig({ values, given: names }: ParsedOptions, machine: HostFacts): string | undefined {
  const path = values.clusterconfig;
  if (values.runonce || path === '') return undefined;
  return names.has('clusterconfig') || bootstrapFile(values) !== undefined || machine.fileExists(path)
    ? path
    : undefined;
}

/** The bootstrap file, by the option or by its deprecated name. */
function bootstrapFile(values: AgentOptions): string | undefined {
  return given(values['bootstrap-clusterconfig']) ?? given(values['experimental-bootstrap-clusterconfig']);
}

/** `kubenet` is an alias of `bridge`. */
function networkPluginOf(word: string): AgentConfig['network']['plugin'] {
  if (word === 'kubenet') return 'bridge';
  return word as AgentConfig['network']['plugin'];
}

/** The option with the period at which CPU sets are reconciled: by default the period of node status updates. */
function reconcilePeriod({ given: names }: ParsedOptions) {
  return names.has('cpu-manager-reconcile-period') ? 'cpu-manager-reconcile-period' : 'node-status-update-frequency';
}

function amounts(map: ReadonlyMap<string, string>): ResourceAmounts {
  return Object.fromEntries([...map].map(([name, amount]) => [name, canonicalQuantity(amount)]));
}

/**
 * Derives the agent's configuration from its options.
 *
 * @param downloaded values by option name that replace the file of --config
 * @throws UsageError when options contradict each other, are out of range, or name a feature gate that does not exist
 */
export function resolveConfig(
  commandLine: ParsedOptions,
  machine: HostFacts,
  downloaded?: ReadonlyMap<string, unknown>,
): ResolvedConfig {
  const parsed =
    downloaded === undefined ? withConfigFile(commandLine, machine.readFile) : withFileValues(commandLine, downloaded);
  const { values } = parsed;
  const gates = resolveGates(values['feature-gates']);
  checkOptions({ values, given: parsed.given, gates });
  const api = clusterconfig(parsed, machine);
  checkAccess(values, api !== undefined);
  const config: AgentConfig = Object.freeze({
    nodeName: (values['hostname-override'].trim() || machine.hostname().trim()).toLowerCase(),
    rootDir: values['root-dir'],
    api:
      api === undefined
        ? undefined
        : {
            clusterconfig: api,
            bootstrap: bootstrapFile(values),
            rotateCertificates: values['rotate-certificates'] && gates[rotationGate] === true,
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
      statsPort: values.runonce ? 0 : values['stats-port'],
      contentionProfiling: values['contention-profiling'],
      debuggingHandlers: values['enable-debugging-handlers'],
      streamingIdleMs: values['streaming-connection-idle-timeout'],
      tlsCertFile: given(values['tls-cert-file']),
      tlsPrivateKeyFile: given(values['tls-private-key-file']),
      certDir: values['cert-dir'],
      anonymousAuth: values['anonymous-auth'],
      clientCaFile: given(values['client-ca-file']),
      tokenWebhook: values['authentication-token-webhook']
        ? { cacheMs: values['authentication-token-webhook-cache-ttl'] }
        : undefined,
      accessWebhook:
        values['authorization-mode'] === 'Webhook'
          ? {
              allowedMs: values['authorization-webhook-cache-authorized-ttl'],
              refusedMs: values['authorization-webhook-cache-unauthorized-ttl'],
            }
          : undefined,
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
    eviction: evictionConfig(values),
    syncMs: values['sync-frequency'],
    volumeStatsMs: values['volume-stats-agg-period'],
    volumePluginDir: values['volume-plugin-dir'],
    mounterPath: given(values['experimental-mounter-path']),
    checkNodeCapabilities: values['experimental-check-node-capabilities-before-mount'],
    containerized: values.containerized,
    seccompRoot: values['seccomp-profile-root'],
    cpuCfsQuota: values['cpu-cfs-quota'],
    cgroups: resolveCgroups(parsed),
    cpuManager: {
      policy: values['cpu-manager-policy'] as AgentConfig['cpuManager']['policy'],
      reconcileMs: values[reconcilePeriod(parsed)],
    },
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
    values,
    warnings: [
      ...deprecationWarnings(parsed),
      ...gateWarnings(gates),
      ...servingWarnings(values),
      ...accessWarnings(values, parsed.given),
      ...runtimeWarnings(values['container-runtime'], parsed.given),
      ...networkWarnings(config, parsed.given),
      ...cgroupWarnings(parsed),
      ...evictionWarnings(values),
      ...credentialWarnings(config, values),
    ],
  };
}
