import { readFile } from 'node:fs/promises';
import type {
  ContainerRuntime,
  PodSandboxConfig,
  PortMapping,
  DnsConfig as SandboxDns,
} from '@keelson/container-runtime';
import type { Pod, Secret } from '@keelson/kinds';
import type { AgentPaths } from '../base/agent-paths.ts';
import type { AgentConfig, DnsConfig } from '../base/config/agent-config.ts';
import type { PodEvents } from '../base/events/event-recorder.ts';
import type { EnvironmentFacts } from '../base/pod/environment-facts.ts';
import type { ObjectReader } from '../base/pod/object-reader.ts';
import { allContainersOf, fullNameOf, uidOf } from '../base/pod/pod-spec.ts';
import type { PodCgroups } from '../machine/cgroups/pod-cgroups.ts';
import type { VolumePlaces } from '../machine/volumes/pod-volumes.ts';
import { type PodRuntimeState, podLabels } from '../runtime-view/runtime-objects.ts';
import { namespacesOf, type SecurityFacts } from './containers/container-config.ts';
import type { StartContext } from './containers/container-starter.ts';
import type { PodActions } from './containers/pod-actions.ts';

/** Facts of the node that pods depend on. */
export interface NodeFacts {
  /** Addresses of the node, the main one first. */
  hostIps(): readonly string[];
  /** The resources that pods can request. */
  allocatable(): Readonly<Record<string, string>>;
  /** The network of the runtime is ready. */
  networkReady(): boolean;
}

export interface StartPreparationOptions {
  readonly config: AgentConfig;
  readonly runtime: ContainerRuntime;
  readonly objects: ObjectReader;
  /** Absent: without an API server. */
  readonly tokens?: EnvironmentFacts['tokens'];
  readonly events: PodEvents;
  readonly node: NodeFacts;
  readonly paths: AgentPaths;
  readonly cgroups: PodCgroups;
  readonly callTimeoutMs: number;
}

/** The runtime failed to create the sandbox of a pod; an event has already been recorded. */
export class SandboxProblem extends Error {
  constructor(cause: unknown) {
    super(`failed to create pod sandbox: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'SandboxProblem';
  }
}

/** Prepares the sandbox and the context in which the containers of a pod are started. */
export class StartPreparation {
  readonly #options: StartPreparationOptions;

  constructor(options: StartPreparationOptions) {
    this.#options = options;
  }

  /**
   * Returns the sandbox of the decision, or creates a new one.
   *
   * @throws SandboxProblem, or the reason of the signal
   */
  async sandbox(
    pod: Pod,
    actions: PodActions,
    signal: AbortSignal,
  ): Promise<Pick<StartContext, 'sandboxId' | 'podIps'>> {
    const { runtime, config, paths, events, cgroups, callTimeoutMs } = this.#options;
    if (actions.sandbox !== undefined) return { sandboxId: actions.sandbox.id, podIps: actions.sandbox.ips };
    const call = { signal, timeoutMs: callTimeoutMs };
    try {
      const { dns, warnings } = podDns(pod, config.dns, await this.#machineDns());
      for (const { reason, message } of warnings) events.record(pod, 'Warning', reason, message);
      const sandboxId = await runtime.runPodSandbox(
        sandboxConfig(pod, actions.sandboxAttempt ?? 0, {
          isolatePids: config.isolatePids,
          seccompRoot: config.seccompRoot,
          logDirectory: paths.podLogs(uidOf(pod)),
          dns,
          cgroupParent: cgroups.parentOf(pod),
        }),
        call,
      );
      const { ips } = await runtime.podSandboxStatus(sandboxId, call);
      return { sandboxId, podIps: ips };
    } catch (error) {
      if (signal.aborted) throw error;
      const problem = new SandboxProblem(error);
      events.record(pod, 'Warning', 'FailedCreatePodSandBox', `F${problem.message.slice(1)}`);
      throw problem;
    }
  }

  async #machineDns(): Promise<ReturnType<typeof parseResolvConf> | undefined> {
    const { resolvConf } = this.#options.config.dns;
    return resolvConf === '' ? undefined : parseResolvConf(await readFile(resolvConf, 'utf8'));
  }

  /** The context that starting a container needs in addition to its specification. */
  async startContext(
    pod: Pod,
    state: PodRuntimeState,
    sandbox: Pick<StartContext, 'sandboxId' | 'podIps'>,
    volumes: VolumePlaces,
  ): Promise<StartContext> {
    const { config, node } = this.#options;
    const environment = this.environment(pod, state);
    const hostNetwork = pod.spec.hostNetwork === true;
    const podIps = hostNetwork || sandbox.podIps.length === 0 ? node.hostIps() : sandbox.podIps;
    const hosts = hostNetwork
      ? hostNetworkHostsFile(pod, await readFile('/etc/hosts', 'utf8').catch(() => ''))
      : hostsFile(pod, sandbox.podIps, config.dns.domain);
    return {
      ...sandbox,
      volumes,
      pullSecrets: await this.#pullSecrets(pod),
      environment: { ...environment, place: { ...environment.place, podIps } },
      hosts,
    };
  }

  environment(pod: Pod, state: PodRuntimeState): EnvironmentFacts {
    const { node, config, objects, tokens } = this.#options;
    const hostIps = node.hostIps();
    const podIps = pod.spec.hostNetwork === true ? hostIps : (state.sandboxes[0]?.ips ?? []);
    return {
      place: { nodeName: config.nodeName, hostIps, podIps },
      objects,
      allocatable: node.allocatable(),
      ...(tokens ? { tokens } : {}),
    };
  }

  /** A missing secret is reported as an event and skipped: the image may be present, or public. */
  async #pullSecrets(pod: Pod): Promise<Secret[]> {
    const { objects, events } = this.#options;
    const found: Secret[] = [];
    for (const { name } of pod.spec.imagePullSecrets ?? []) {
      // The API accepts references without a name; Kubernetes ignores them.
      if (!name) continue;
      const secret = await objects.secret(pod.metadata?.namespace ?? '', name).catch(() => undefined);
      if (secret !== undefined) found.push(secret);
      else
        events.record(
          pod,
          'Warning',
          'FailedToRetrieveImagePullSecret',
          `Unable to retrieve image pull secret ${name} for ${fullNameOf(pod)}`,
        );
    }
    return found;
  }
}

export interface SandboxFacts extends SecurityFacts {
  readonly logDirectory: string;
  readonly dns: SandboxDns;
  /** Undefined: the default of the runtime. */
  readonly cgroupParent?: string | undefined;
}

/** The configuration of a pod's sandbox for its runtime. */
export function sandboxConfig(pod: Pod, attempt: number, facts: SandboxFacts): PodSandboxConfig {
  const { name = '', namespace = '', uid = '', annotations } = pod.metadata ?? {};
  const security = pod.spec.securityContext ?? {};
  const hostNetwork = pod.spec.hostNetwork === true;
  const sysctls = security.sysctls ?? [];
  const ports = hostNetwork ? [] : portMappings(pod);
  return {
    metadata: { name, namespace, uid, attempt },
    ...(hostNetwork ? {} : { hostname: hostNameOf(pod) }),
    logDirectory: facts.logDirectory,
    dns: facts.dns,
    ...(ports.length > 0 ? { portMappings: ports } : {}),
    labels: podLabels(pod),
    annotations: { ...annotations },
    ...(facts.cgroupParent === undefined ? {} : { cgroupParent: facts.cgroupParent }),
    ...(sysctls.length > 0
      ? { sysctls: Object.fromEntries(sysctls.map((sysctl) => [sysctl.name, sysctl.value])) }
      : {}),
    securityContext: {
      namespaces: namespacesOf(pod, facts),
      ...(allContainersOf(pod).some(({ securityContext }) => securityContext?.privileged === true)
        ? { privileged: true }
        : {}),
    },
  };
}

function portMappings(pod: Pod): PortMapping[] {
  return allContainersOf(pod).flatMap(({ ports }) =>
    (ports ?? [])
      .filter(({ hostPort }) => hostPort)
      .map(({ containerPort, hostPort, hostIP, protocol }) => ({
        protocol: protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP',
        containerPort,
        ...(hostPort === undefined ? {} : { hostPort }),
        ...(hostIP ? { hostIp: hostIP } : {}),
      })),
  );
}

const maxServers = 3;
const maxSearches = 6;
const maxSearchChars = 256;

export interface PodDns {
  readonly dns: SandboxDns;
  /** Problems to report, as reason and message of an event. */
  readonly warnings: readonly { readonly reason: string; readonly message: string }[];
}

/** Reads the parts of a resolv.conf; of `search` and `options` the last line counts. */
export function parseResolvConf(text: string): SandboxDns {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...rest] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && rest[0] !== undefined) servers.push(rest[0]);
    else if (keyword === 'search' || keyword === 'domain')
      searches = rest.map((name) => (name === '.' ? name : name.replace(/\.$/, '')));
    else if (keyword === 'options') options = rest;
  }
  return { servers, searches, options };
}

/**
 * Resolver settings of a pod: see docs/reference/agent-rules.md#dns-of-pods. `machine` is the configured resolv.conf,
 * undefined when none is used.
 */
export function podDns(pod: Pod, config: DnsConfig, machine: SandboxDns | undefined): PodDns {
  const warnings: { reason: string; message: string }[] = [];
  const base = machine ?? { servers: ['127.0.0.1'], searches: ['.'], options: [] };
  const policy = pod.spec.dnsPolicy ?? 'ClusterFirst';
  const cluster = policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && pod.spec.hostNetwork !== true);
  let dns: SandboxDns = base;
  if (policy === 'None') dns = { servers: [], searches: [], options: [] };
  else if (cluster && config.servers.length > 0) dns = clusterDns(pod, config, machine);
  else if (cluster) {
    const message =
      'the agent has no cluster DNS servers and cannot make a pod with this policy; it falls back to "Default"';
    warnings.push({ reason: 'MissingClusterDNS', message });
  }
  return { dns: limited(withOwn(dns, pod), warnings), warnings };
}

function clusterDns(pod: Pod, { servers, domain }: DnsConfig, machine: SandboxDns | undefined): SandboxDns {
  const own = domain === '' ? [] : [`${pod.metadata?.namespace ?? ''}.svc.${domain}`, `svc.${domain}`, domain];
  return { servers, searches: [...own, ...(machine?.searches ?? [])], options: ['ndots:5'] };
}

function withOwn(dns: SandboxDns, pod: Pod): SandboxDns {
  const own = pod.spec.dnsConfig;
  if (!own) return dns;
  const options = new Map(dns.options.map((option) => [option.split(':')[0] ?? '', option]));
  for (const { name = '', value } of own.options ?? []) options.set(name, value ? `${name}:${value}` : name);
  return {
    servers: [...new Set([...dns.servers, ...(own.nameservers ?? [])])],
    searches: [...new Set([...dns.searches, ...(own.searches ?? [])])],
    options: [...options.values()],
  };
}

/** Omits entries beyond the limits of resolvers, with a warning. */
function limited(dns: SandboxDns, warnings: { reason: string; message: string }[]): SandboxDns {
  const servers = dns.servers.slice(0, maxServers);
  let searches = dns.searches.slice(0, maxSearches);
  while (searches.join(' ').length > maxSearchChars) searches = searches.slice(0, -1);
  if (servers.length < dns.servers.length) {
    const message = `Nameserver limits were exceeded, the applied nameserver line is: ${servers.join(' ')}`;
    warnings.push({ reason: 'DNSConfigForming', message });
  }
  if (searches.length < dns.searches.length) {
    const message = `Search line limits were exceeded, the applied search line is: ${searches.join(' ')}`;
    warnings.push({ reason: 'DNSConfigForming', message });
  }
  return { servers, searches, options: dns.options };
}

// Programs recognise the file by this line, which is that of Kubernetes.
const header = '# Kubernetes-managed hosts file.';

/** The host name of a pod: its `hostname` or name, truncated to the length that Linux permits. */
export function hostNameOf(pod: Pod): string {
  const name = pod.spec.hostnameOverride || pod.spec.hostname || pod.metadata?.name || '';
  return name.slice(0, 63).replace(/[-.]+$/, '');
}

/** The hosts file of a pod with its own network. */
export function hostsFile(pod: Pod, ips: readonly string[], clusterDomain: string): string {
  const host = hostNameOf(pod);
  const { subdomain } = pod.spec;
  const full = subdomain
    ? `${host}.${subdomain}.${pod.metadata?.namespace ?? ''}.svc${clusterDomain ? `.${clusterDomain}` : ''}`
    : '';
  const lines = [
    header,
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
    ...ips.map((ip) => `${ip}\t${full === '' ? host : `${full}\t${host}`}`),
    ...aliasLines(pod),
  ];
  return `${lines.join('\n')}\n`;
}

/** The hosts file of a pod on the host's network: that of the host, with the pod's aliases. */
export function hostNetworkHostsFile(pod: Pod, machine: string): string {
  return [header, machine.trimEnd(), ...aliasLines(pod), ''].join('\n');
}

function aliasLines(pod: Pod): string[] {
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length === 0) return [];
  return [
    '',
    '# Entries added by HostAliases.',
    ...aliases.map(({ ip, hostnames }) => [ip, ...(hostnames ?? [])].join('\t')),
  ];
}
