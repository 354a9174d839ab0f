import {
  type Check,
  named,
  namesOf,
  offenders,
  type PodView,
  plural,
  quoted,
  settersOf,
  sorted,
  type Violation,
} from './pod-view.ts';

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/';
const seccompPodKey = 'seccomp.security.alpha.kubernetes.io/pod';
const seccompContainerPrefix = 'container.seccomp.security.alpha.kubernetes.io/';

const isAllowedProfile = (type: string): boolean => type === 'RuntimeDefault' || type === 'Localhost';

const defaultCapabilities = new Set([
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]);

/** Kernel parameters that pods may set, and the minor version since which they may. */
const safeSysctls = new Map([
  ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'].map((name) => [name, 0]),
  ...['net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start'].map((name) => [name, 0]),
  ['net.ipv4.ip_local_reserved_ports', 27],
  ...['time', 'intvl', 'probes'].map((part) => [`net.ipv4.tcp_keepalive_${part}`, 29]),
  ['net.ipv4.tcp_fin_timeout', 29],
  ...['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'].map((name) => [name, 32]),
] as [string, number][]);

/** SELinux types that may be chosen, and the minor version since which they may. */
const seLinuxTypes = new Map([
  ...['', 'container_t', 'container_init_t', 'container_kvm_t'].map((type) => [type, 0]),
  ['container_engine_t', 31],
] as [string, number][]);

function isKnown(known: ReadonlyMap<string, number>, name: string, minor: number): boolean {
  const since = known.get(name);
  return since !== undefined && minor >= since;
}

function appArmorProfile(pod: PodView): Violation | undefined {
  const types: string[] = [];
  const found = offenders(pod, ({ appArmorProfile: profile }) => {
    if (profile === undefined || isAllowedProfile(profile.type)) return false;
    types.push(profile.type);
    return true;
  });
  const annotations = Object.entries(pod.annotations)
    .filter(([key, value]) => key.startsWith(appArmorPrefix) && !/^($|runtime\/default$|localhost\/)/.test(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const values = [...sorted(types), ...sorted(annotations)];
  if (values.length === 0) return undefined;
  const setters = settersOf(found, ...(annotations.length > 0 ? [plural(annotations.length, 'annotation')] : []));
  return {
    reason: plural(values.length, 'forbidden AppArmor profile'),
    detail: `${setters} must not set AppArmor profile type to ${quoted(values)}`,
  };
}

/** The containers that add capabilities other than those allowed, and the capabilities. */
export function addedCapabilities({ containers }: PodView, isAllowed: (name: string) => boolean): string | undefined {
  const forbidden: string[] = [];
  const names = namesOf(containers, ({ securityContext }) => {
    const added = (securityContext?.capabilities?.add ?? []).filter((name) => !isAllowed(name));
    for (const name of added) forbidden.push(name);
    return added.length > 0;
  });
  if (names.length === 0) return undefined;
  return `${named('container', names)} must not include ${quoted(sorted(forbidden))} in securityContext.capabilities.add`;
}

function capabilities(pod: PodView): Violation | undefined {
  const detail = addedCapabilities(pod, (name) => defaultCapabilities.has(name));
  return detail === undefined ? undefined : { reason: 'non-default capabilities', detail };
}

function hostNamespaces({ spec }: PodView): Violation | undefined {
  const used = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field]);
  if (used.length === 0) return undefined;
  return { reason: 'host namespaces', detail: used.map((field) => `${field}=true`).join(', ') };
}

function hostPathVolumes({ spec }: PodView): Violation | undefined {
  const names = namesOf(spec.volumes ?? [], ({ hostPath }) => hostPath !== undefined);
  return names.length === 0 ? undefined : { reason: 'hostPath volumes', detail: named('volume', names) };
}

function hostPorts({ containers }: PodView): Violation | undefined {
  const ports = new Set<string>();
  const names = namesOf(containers, (container) => {
    const used = (container.ports ?? []).filter(({ hostPort }) => hostPort);
    for (const { hostPort } of used) ports.add(String(hostPort));
    return used.length > 0;
  });
  if (names.length === 0) return undefined;
  const verb = plural(names.length, 'uses', 'use');
  const list = sorted(ports).join(', ');
  return {
    reason: 'hostPort',
    detail: `${named('container', names)} ${verb} ${plural(ports.size, 'hostPort')} ${list}`,
  };
}

function handlerHosts({ containers }: PodView): Violation | undefined {
  const hosts = new Set<string>();
  const names = namesOf(containers, ({ livenessProbe, readinessProbe, startupProbe, lifecycle }) => {
    const handlers = [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop];
    const used = handlers
      .flatMap((handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host])
      .filter((host) => host);
    for (const host of used) hosts.add(host as string);
    return used.length > 0;
  });
  if (names.length === 0) return undefined;
  const reason = 'probe or lifecycle host';
  const verb = plural(names.length, 'uses', 'use');
  const detail = `${named('container', sorted(names))} ${verb} ${plural(hosts.size, reason)} ${quoted(sorted(hosts))}`;
  return { reason, detail };
}

function privileged({ containers }: PodView): Violation | undefined {
  const names = namesOf(containers, ({ securityContext }) => securityContext?.privileged === true);
  if (names.length === 0) return undefined;
  return { reason: 'privileged', detail: `${named('container', names)} must not set securityContext.privileged=true` };
}

function procMount({ containers }: PodView): Violation | undefined {
  const types: string[] = [];
  const names = namesOf(containers, ({ securityContext }) => {
    const type = securityContext?.procMount;
    if (type === undefined || type === 'Default') return false;
    types.push(type);
    return true;
  });
  if (names.length === 0) return undefined;
  const detail = `${named('container', names)} must not set securityContext.procMount to ${quoted(sorted(types))}`;
  return { reason: 'procMount', detail };
}

function seLinuxOptions(pod: PodView, minor: number): Violation | undefined {
  const types = new Set<string>();
  const set = new Set<string>();
  const found = settersOf(
    offenders(pod, ({ seLinuxOptions: options }) => {
      if (options === undefined) return false;
      const { type = '', user, role } = options;
      const isTypeAllowed = isKnown(seLinuxTypes, type, minor);
      if (!isTypeAllowed) types.add(type);
      if (user) set.add('user');
      if (role) set.add('role');
      return !isTypeAllowed || Boolean(user) || Boolean(role);
    }),
  );
  if (found === '') return undefined;
  const wrong = [
    ...(types.size > 0 ? [named('type', sorted(types))] : []),
    ...['user', 'role'].filter((field) => set.has(field)).map((field) => `${field} may not be set`),
  ];
  return {
    reason: 'seLinuxOptions',
    detail: `${found} set forbidden securityContext.seLinuxOptions: ${wrong.join('; ')}`,
  };
}

/** The parts that choose a forbidden seccomp profile, and which. */
export function forbiddenSeccomp(pod: PodView): Violation | undefined {
  const types: string[] = [];
  const found = offenders(pod, ({ seccompProfile: profile }) => {
    if (profile === undefined || isAllowedProfile(profile.type)) return false;
    types.push(profile.type);
    return true;
  });
  if (types.length === 0) return undefined;
  const detail = `${settersOf(found)} must not set securityContext.seccompProfile.type to ${quoted(sorted(types))}`;
  return { reason: 'seccompProfile', detail };
}

/** Before 1.19 profiles are chosen by annotations. */
function seccompProfile(pod: PodView, minor: number): Violation | undefined {
  if (minor >= 19) return forbiddenSeccomp(pod);
  const keys = [seccompPodKey, ...pod.containers.map(({ name }) => `${seccompContainerPrefix}${name}`)];
  const found = keys.flatMap((key) => {
    const value = pod.annotations[key];
    if (value === undefined || /^((runtime|docker)\/default$|localhost\/)/.test(value)) return [];
    return [`${key}=${JSON.stringify(value)}`];
  });
  if (found.length === 0) return undefined;
  const detail = `forbidden ${plural(found.length, 'annotation')} ${sorted(found).join(', ')}`;
  return { reason: 'seccompProfile', detail };
}

function sysctls({ spec }: PodView, minor: number): Violation | undefined {
  const given = spec.securityContext?.sysctls ?? [];
  const names = namesOf(given, ({ name }) => !isKnown(safeSysctls, name, minor));
  return names.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: names.join(', ') };
}

function windowsHostProcess(pod: PodView): Violation | undefined {
  const found = settersOf(offenders(pod, ({ windowsOptions }) => windowsOptions?.hostProcess === true));
  if (found === '') return undefined;
  return { reason: 'hostProcess', detail: `${found} must not set securityContext.windowsOptions.hostProcess=true` };
}

/** The checks of the level `baseline`, in the order of messages. */
export const baselineChecks: readonly Check[] = [
  { since: 0, examine: appArmorProfile },
  { since: 0, examine: capabilities, replacedSince: 22 },
  { since: 0, examine: hostNamespaces },
  { since: 0, examine: hostPathVolumes, replacedSince: 0 },
  { since: 0, examine: hostPorts },
  { since: 34, examine: handlerHosts },
  { since: 0, examine: privileged },
  { since: 0, examine: procMount },
  { since: 0, examine: seLinuxOptions },
  { since: 0, examine: seccompProfile, replacedSince: 19 },
  { since: 0, examine: sysctls },
  { since: 0, examine: windowsHostProcess },
];
