/** A pod, the level that it is examined for, and what violates the level: empty for a pod that conforms. */
export type PodSecurityCase = readonly [
  level: string,
  spec: object,
  violations: string,
  annotations?: Readonly<Record<string, string>>,
];

const safeContainer = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
const safePod = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };

/** A container that conforms to the level `restricted` but for the fields that are given. */
const container = (context: object = {}, fields: object = {}, name = 'c') => ({
  ...{ name, image: 'i', securityContext: { ...safeContainer, ...context } },
  ...fields,
});
const pod = (context: object = {}, fields: object = {}, containers: readonly object[] = [container()]) => ({
  securityContext: { ...safePod, ...context },
  containers,
  ...fields,
});
/** A pod with one container. */
const one = (context: object, fields: object = {}) => pod({}, {}, [container(context, fields)]);
/** A pod with the containers `init`, `a` and `b`, which have the same fields. */
const three = (context: object, fields: object = {}) =>
  pod({}, { initContainers: [container(context, fields, 'init')] }, [
    container(context, fields, 'b'),
    container(context, fields, 'a'),
  ]);
const windows = (fields: object = {}, context?: object) => ({
  ...{ os: { name: 'windows' }, containers: [{ name: 'c', image: 'i', ...(context && { securityContext: context }) }] },
  ...fields,
});
const volumes = (...sources: readonly object[]) =>
  pod({}, { volumes: sources.map((source, i) => ({ name: `v${i}`, ...source })) });
const sysctls = (...names: readonly string[]) => pod({ sysctls: names.map((name) => ({ name, value: '1' })) });
const http = (host: string) => ({ httpGet: { port: 80, path: '/', host } });
const tcp = (host: string) => ({ tcpSocket: { port: 80, host } });

const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const [baseline, restricted] = ['baseline:latest', 'restricted:latest'];
const unconfined = { type: 'Unconfined' };
const runtimeDefault = { type: 'RuntimeDefault' };
const appArmorKey = 'container.apparmor.security.beta.kubernetes.io/';
const hostProcess = { windowsOptions: { hostProcess: true } };
const bare = { containers: [{ name: 'c', image: 'i' }] };
const privileged = { privileged: true, allowPrivilegeEscalation: undefined };
const firstSysctls = [
  ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'],
  ...['net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start'],
];
const laterSysctls = ['net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_rmem'];
const unsetEscalation = 'must set securityContext.allowPrivilegeEscalation=false';
const undropped = 'container "c" must set securityContext.capabilities.drop=["ALL"]';
const unsetSeccomp = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"';

/** A pod that violates every check of `baseline` that Linux pods of one container can violate. */
const worst = {
  ...{ hostNetwork: true, volumes: [{ name: 'v', hostPath: { path: '/' } }] },
  securityContext: {
    ...{ seLinuxOptions: { type: 't' }, sysctls: [{ name: 'kernel.msgmax', value: '1' }] },
    ...{ seccompProfile: unconfined, appArmorProfile: unconfined },
  },
  containers: [
    {
      ...{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }], livenessProbe: http('h') },
      securityContext: { privileged: true, capabilities: { add: ['SYS_ADMIN'] } },
    },
  ],
};

/** Cases by check. Every message is that of kube-apiserver 1.34 for the same pod. */
export const podSecurityCases: Readonly<Record<string, readonly PodSecurityCase[]>> = {
  'all checks': [
    ['privileged:latest', { ...bare, hostNetwork: true }, ''],
    [baseline, bare, ''],
    [restricted, pod(), ''],
    [
      restricted,
      bare,
      `allowPrivilegeEscalation != false (container "c" ${unsetEscalation}), unrestricted capabilities (${undropped}), ` +
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), ' +
        `seccompProfile (pod or container "c" ${unsetSeccomp})`,
    ],
    ['restricted:v1.0', bare, 'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)'],
    [
      baseline,
      worst,
      'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"), non-default capabilities ' +
        '(container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add), host namespaces ' +
        '(hostNetwork=true), hostPath volumes (volume "v"), hostPort (container "c" uses hostPort 80), probe or ' +
        'lifecycle host (container "c" uses probe or lifecycle host "h"), privileged (container "c" must not set ' +
        'securityContext.privileged=true), seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "t"), ' +
        'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined"), forbidden sysctls ' +
        '(kernel.msgmax)',
    ],
    [
      'baseline:v1.0',
      worst,
      'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"), non-default capabilities ' +
        '(container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add), host namespaces ' +
        '(hostNetwork=true), hostPath volumes (volume "v"), hostPort (container "c" uses hostPort 80), privileged ' +
        '(container "c" must not set securityContext.privileged=true), seLinuxOptions (pod set forbidden ' +
        'securityContext.seLinuxOptions: type "t"), forbidden sysctls (kernel.msgmax)',
    ],
  ],
  allowPrivilegeEscalation: [
    [baseline, one({ allowPrivilegeEscalation: true }), ''],
    ['restricted:v1.7', one({ allowPrivilegeEscalation: true }), ''],
    [
      restricted,
      one({ allowPrivilegeEscalation: true }),
      `allowPrivilegeEscalation != false (container "c" ${unsetEscalation})`,
    ],
    [
      'restricted:v1.8',
      three({ allowPrivilegeEscalation: undefined }),
      `allowPrivilegeEscalation != false (containers "init", "b", "a" ${unsetEscalation})`,
    ],
  ],
  appArmorProfile: [
    [baseline, pod({ appArmorProfile: runtimeDefault }), ''],
    [restricted, one({ appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } }), ''],
    [
      baseline,
      one({ appArmorProfile: unconfined }),
      'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
    ],
    [
      restricted,
      pod({ appArmorProfile: unconfined }, {}, [container({ appArmorProfile: unconfined })]),
      'forbidden AppArmor profile (pod and container "c" must not set AppArmor profile type to "Unconfined")',
    ],
    [baseline, pod(), '', { [`${appArmorKey}c`]: 'localhost/x' }],
    [baseline, pod(), '', { [`${appArmorKey}c`]: 'runtime/default' }],
  ],
  'capabilities, baseline': [
    [baseline, one({ capabilities: { add: ['CHOWN', 'NET_BIND_SERVICE'] } }), ''],
    [
      baseline,
      three({ capabilities: { add: ['SYS_TIME', 'NET_RAW', 'CAP_CHOWN', 'CHOWN'] } }),
      'non-default capabilities (containers "init", "b", "a" must not include "CAP_CHOWN", "NET_RAW", "SYS_TIME" in ' +
        'securityContext.capabilities.add)',
    ],
    [
      'restricted:v1.21',
      one({ capabilities: { add: ['NET_RAW', 'KILL'] } }),
      'non-default capabilities (container "c" must not include "NET_RAW" in securityContext.capabilities.add)',
    ],
  ],
  'capabilities, restricted': [
    [restricted, one({ capabilities: { drop: ['NET_RAW', 'ALL'], add: ['NET_BIND_SERVICE'] } }), ''],
    ['restricted:v1.21', one({ capabilities: {} }), ''],
    ['restricted:v1.22', one({ capabilities: {} }), `unrestricted capabilities (${undropped})`],
    [restricted, one({ capabilities: { drop: ['all'] } }), `unrestricted capabilities (${undropped})`],
    [
      restricted,
      one({ capabilities: { add: ['KILL', 'CHOWN'] } }),
      `unrestricted capabilities (${undropped}; container "c" must not include "CHOWN", "KILL" in ` +
        'securityContext.capabilities.add)',
    ],
  ],
  hostNamespaces: [
    [baseline, pod({}, { hostUsers: false }), ''],
    [baseline, pod({}, { hostNetwork: true }), 'host namespaces (hostNetwork=true)'],
    [restricted, pod({}, { hostIPC: true, hostPID: true }), 'host namespaces (hostPID=true, hostIPC=true)'],
  ],
  hostPathVolumes: [
    [baseline, volumes({ nfs: { server: 's', path: '/' } }), ''],
    [baseline, volumes({ hostPath: { path: '/' } }), 'hostPath volumes (volume "v0")'],
    [
      baseline,
      volumes({ hostPath: { path: '/' } }, { emptyDir: {} }, { hostPath: { path: '/x' } }),
      'hostPath volumes (volumes "v0", "v2")',
    ],
  ],
  hostPorts: [
    [restricted, one({}, { ports: [{ containerPort: 80 }] }), ''],
    [
      baseline,
      one({}, { ports: [{ containerPort: 80, hostPort: 8080 }] }),
      'hostPort (container "c" uses hostPort 8080)',
    ],
    [
      restricted,
      pod({}, {}, [
        container({}, { ports: [{ containerPort: 80, hostPort: 9000 }, { containerPort: 81 }] }, 'b'),
        container({}, { ports: [{ containerPort: 90, hostPort: 10000 }] }, 'a'),
      ]),
      'hostPort (containers "b", "a" use hostPorts 10000, 9000)',
    ],
  ],
  hostProbesAndHostLifecycle: [
    [baseline, one({}, { livenessProbe: { httpGet: { port: 80, path: '/' } } }), ''],
    ['baseline:v1.33', one({}, { livenessProbe: http('h') }), ''],
    [
      'baseline:v1.34',
      one({}, { livenessProbe: http('h') }),
      'probe or lifecycle host (container "c" uses probe or lifecycle host "h")',
    ],
    [
      restricted,
      pod({}, { initContainers: [container({}, { restartPolicy: 'Always', startupProbe: tcp('z') }, 'init')] }, [
        container({}, { readinessProbe: tcp('b'), lifecycle: { postStart: http('y'), preStop: tcp('x') } }),
      ]),
      'probe or lifecycle host (containers "c", "init" use probe or lifecycle hosts "b", "x", "y", "z")',
    ],
  ],
  privileged: [
    [restricted, one({ privileged: false }), ''],
    [baseline, one(privileged), 'privileged (container "c" must not set securityContext.privileged=true)'],
    [
      baseline,
      three(privileged),
      'privileged (containers "init", "b", "a" must not set securityContext.privileged=true)',
    ],
  ],
  procMount: [
    [restricted, one({ procMount: 'Default' }), ''],
    [
      baseline,
      pod({}, { hostUsers: false }, [container({ procMount: 'Unmasked' })]),
      'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ],
  ],
  restrictedVolumes: [
    [
      restricted,
      volumes(
        ...[{ configMap: { name: 'x' } }, { secret: { secretName: 'x' } }, { emptyDir: {} }, { downwardAPI: {} }],
        ...[{ projected: { sources: [] } }, { persistentVolumeClaim: { claimName: 'x' } }, { csi: { driver: 'd' } }],
        ...[{ image: { reference: 'i' } }, { ephemeral: { volumeClaimTemplate: { spec: claim } } }],
      ),
      '',
    ],
    [
      'restricted:v1.0',
      volumes({ hostPath: { path: '/' } }),
      'restricted volume types (volume "v0" uses restricted volume type "hostPath")',
    ],
    [
      restricted,
      volumes(
        ...[{ nfs: { server: 's', path: '/' } }, { emptyDir: {} }, { awsElasticBlockStore: { volumeID: 'x' } }],
        ...[{ storageos: { volumeName: 'v' } }, { fc: { targetWWNs: ['x'], lun: 0 } }, { hostPath: { path: '/' } }],
      ),
      'restricted volume types (volumes "v0", "v2", "v3", "v4", "v5" use restricted volume types ' +
        '"awsElasticBlockStore", "fc", "hostPath", "nfs", "storageos")',
    ],
  ],
  runAsNonRoot: [
    [baseline, pod({ runAsNonRoot: false }), ''],
    [restricted, pod({ runAsNonRoot: undefined }, {}, [container({ runAsNonRoot: true })]), ''],
    [
      restricted,
      pod({ runAsNonRoot: undefined }, {}, [container({ runAsNonRoot: true }), container({}, {}, 'd')]),
      'runAsNonRoot != true (pod or container "d" must set securityContext.runAsNonRoot=true)',
    ],
    [
      restricted,
      pod({ runAsNonRoot: false }, { hostUsers: false }, [container({ runAsNonRoot: false })]),
      'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
    ],
  ],
  runAsUser: [
    [restricted, pod({ runAsUser: 1000 }), ''],
    ['restricted:v1.22', pod({ runAsUser: 0 }), ''],
    ['restricted:v1.23', pod({ runAsUser: 0 }), 'runAsUser=0 (pod must not set runAsUser=0)'],
    [restricted, three({ runAsUser: 0 }), 'runAsUser=0 (containers "init", "b", "a" must not set runAsUser=0)'],
  ],
  seLinuxOptions: [
    [restricted, pod({ seLinuxOptions: { type: 'container_kvm_t', level: 's0' } }), ''],
    ['baseline:v1.0', pod({ seLinuxOptions: { type: 'container_t' } }, {}, [container({ seLinuxOptions: {} })]), ''],
    ['baseline:v1.0', one({ seLinuxOptions: { type: 'container_init_t' } }), ''],
    ['baseline:v1.31', one({ seLinuxOptions: { type: 'container_engine_t' } }), ''],
    [
      'baseline:v1.30',
      one({ seLinuxOptions: { type: 'container_engine_t' } }),
      'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
    ],
    [
      restricted,
      pod({ seLinuxOptions: { type: 'x', user: 'u' } }, {}, [container({ seLinuxOptions: { type: 'b', role: 'r' } })]),
      'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: types "b", "x"; user may not ' +
        'be set; role may not be set)',
    ],
    [
      baseline,
      pod({ seLinuxOptions: { role: 'r' } }),
      'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: role may not be set)',
    ],
  ],
  'seccompProfile, baseline': [
    [baseline, pod({ seccompProfile: undefined }), ''],
    [
      'baseline:v1.19',
      pod({ seccompProfile: unconfined }, {}, [container({ seccompProfile: unconfined })]),
      'seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    ['baseline:v1.18', pod({ seccompProfile: unconfined }), ''],
    [
      'baseline:v1.18',
      pod({ seccompProfile: undefined }),
      'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
      { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' },
    ],
    [
      'restricted:v1.18',
      pod({ seccompProfile: undefined }),
      '',
      {
        'seccomp.security.alpha.kubernetes.io/pod': 'docker/default',
        'container.seccomp.security.alpha.kubernetes.io/c': 'localhost/x',
      },
    ],
  ],
  'seccompProfile, restricted': [
    [restricted, pod({ seccompProfile: undefined }, {}, [container({ seccompProfile: runtimeDefault })]), ''],
    ['restricted:v1.18', pod({ seccompProfile: undefined }), ''],
    [
      restricted,
      pod({ seccompProfile: undefined }, {}, [container({ seccompProfile: runtimeDefault }), container({}, {}, 'd')]),
      `seccompProfile (pod or container "d" ${unsetSeccomp})`,
    ],
    [
      'restricted:v1.19',
      one({ seccompProfile: unconfined }),
      'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
  ],
  sysctls: [
    [restricted, sysctls(...firstSysctls, ...laterSysctls), ''],
    [baseline, sysctls('net.core.somaxconn', 'kernel.msgmax'), 'forbidden sysctls (net.core.somaxconn, kernel.msgmax)'],
    ['baseline:v1.0', sysctls(...firstSysctls), ''],
    ['baseline:v1.26', sysctls(...laterSysctls), `forbidden sysctls (${laterSysctls.join(', ')})`],
    ['baseline:v1.28', sysctls(...laterSysctls), `forbidden sysctls (${laterSysctls.slice(1).join(', ')})`],
    ['baseline:v1.31', sysctls(...laterSysctls), `forbidden sysctls (${laterSysctls.slice(2).join(', ')})`],
    ['baseline:v1.32', sysctls(...laterSysctls), ''],
  ],
  windowsHostProcess: [
    [restricted, windows({ securityContext: { runAsNonRoot: true } }), ''],
    [
      'restricted:v1.24',
      windows({ securityContext: { runAsNonRoot: true } }),
      `allowPrivilegeEscalation != false (container "c" ${unsetEscalation}), unrestricted capabilities (${undropped}), ` +
        `seccompProfile (pod or container "c" ${unsetSeccomp})`,
    ],
    [
      baseline,
      windows({ hostNetwork: true, securityContext: hostProcess }, hostProcess),
      'host namespaces (hostNetwork=true), hostProcess (pod and container "c" must not set ' +
        'securityContext.windowsOptions.hostProcess=true)',
    ],
  ],
};
