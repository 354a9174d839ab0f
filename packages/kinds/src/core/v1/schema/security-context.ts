import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const seLinuxOptions = s.message('k8s.io.api.core.v1.SELinuxOptions', 'An SELinux label.', {
  user: optional(1, s.string(), 'User part.'),
  role: optional(2, s.string(), 'Role part.'),
  type: optional(3, s.string(), 'Type part.'),
  level: optional(4, s.string(), 'Level part.'),
});
export interface SELinuxOptions extends Infer<typeof seLinuxOptions> {}
export const SELinuxOptionsSchema: Schema<SELinuxOptions> = seLinuxOptions;

const windowsSecurityContextOptions = s.message(
  'k8s.io.api.core.v1.WindowsSecurityContextOptions',
  'Settings for Windows.',
  {
    gmsaCredentialSpecName: optional(1, s.string(), "Name of the group-managed account's credential spec.", {
      presence: true,
    }),
    gmsaCredentialSpec: optional(2, s.string(), 'The credential spec itself.', { presence: true }),
    runAsUserName: optional(3, s.string(), 'User that runs the process.', { presence: true }),
    hostProcess: optional(4, s.bool(), 'True runs it as a process of the host; all containers of a pod must agree.', {
      presence: true,
    }),
  },
);
export interface WindowsSecurityContextOptions extends Infer<typeof windowsSecurityContextOptions> {}
export const WindowsSecurityContextOptionsSchema: Schema<WindowsSecurityContextOptions> = windowsSecurityContextOptions;

const seccompProfile = s.message('k8s.io.api.core.v1.SeccompProfile', 'Which system calls are allowed.', {
  type: always(
    1,
    s.string({ values: ['Localhost', 'RuntimeDefault', 'Unconfined'] }),
    'RuntimeDefault, Unconfined, or Localhost for a profile on the node.',
  ),
  localhostProfile: optional(
    2,
    s.string(),
    "File of the profile, relative to the agent's directory; for Localhost only.",
    {
      presence: true,
    },
  ),
});
export interface SeccompProfile extends Infer<typeof seccompProfile> {}
export const SeccompProfileSchema: Schema<SeccompProfile> = seccompProfile;

const appArmorProfile = s.message('k8s.io.api.core.v1.AppArmorProfile', 'An AppArmor profile.', {
  type: always(
    1,
    s.string({ values: ['Localhost', 'RuntimeDefault', 'Unconfined'] }),
    'RuntimeDefault, Unconfined, or Localhost for a profile on the node.',
  ),
  localhostProfile: optional(2, s.string(), 'Name of the loaded profile; for Localhost only.', { presence: true }),
});
export interface AppArmorProfile extends Infer<typeof appArmorProfile> {}
export const AppArmorProfileSchema: Schema<AppArmorProfile> = appArmorProfile;

const sysctl = s.message('k8s.io.api.core.v1.Sysctl', 'A kernel parameter.', {
  name: always(1, s.string(), 'Name of the parameter.'),
  value: always(2, s.string(), 'Value to set.'),
});
export interface Sysctl extends Infer<typeof sysctl> {}
export const SysctlSchema: Schema<Sysctl> = sysctl;

const capabilities = s.message('k8s.io.api.core.v1.Capabilities', 'Changes of the Linux capabilities of a container.', {
  add: optional(1, s.list(s.string(), { listType: 'atomic' }), 'Capabilities to add.'),
  drop: optional(2, s.list(s.string(), { listType: 'atomic' }), 'Capabilities to take away.'),
});
export interface Capabilities extends Infer<typeof capabilities> {}
export const CapabilitiesSchema: Schema<Capabilities> = capabilities;

const podSecurityContext = s.message(
  'k8s.io.api.core.v1.PodSecurityContext',
  'Security settings for all containers of a pod.',
  {
    seLinuxOptions: optional(1, SELinuxOptionsSchema, 'SELinux label.'),
    windowsOptions: optional(8, WindowsSecurityContextOptionsSchema, 'Settings for Windows.'),
    runAsUser: optional(2, s.int64(), 'User ID of the first process.', { presence: true }),
    runAsGroup: optional(6, s.int64(), 'Group ID of the first process.', { presence: true }),
    runAsNonRoot: optional(3, s.bool(), 'True refuses to start as user 0.', { presence: true }),
    supplementalGroups: optional(4, s.list(s.int64(), { listType: 'atomic' }), 'Further group IDs.'),
    supplementalGroupsPolicy: optional(
      12,
      s.string({ values: ['Merge', 'Strict'] }),
      "Merge adds the groups of the image's user, Strict does not.",
      {
        presence: true,
      },
    ),
    fsGroup: optional(5, s.int64(), 'Group ID that owns the volumes.', { presence: true }),
    sysctls: optional(7, s.list(SysctlSchema, { listType: 'atomic' }), 'Kernel parameters of the pod.'),
    fsGroupChangePolicy: optional(
      9,
      s.string({ values: ['Always', 'OnRootMismatch'] }),
      'When volumes are handed to fsGroup: Always or OnRootMismatch.',
      {
        presence: true,
      },
    ),
    seccompProfile: optional(10, SeccompProfileSchema, 'Which system calls are allowed.'),
    appArmorProfile: optional(11, AppArmorProfileSchema, 'AppArmor profile.'),
    seLinuxChangePolicy: optional(13, s.string(), 'How volumes get the label: Recursive or MountOption.', {
      presence: true,
    }),
  },
);
export interface PodSecurityContext extends Infer<typeof podSecurityContext> {}
export const PodSecurityContextSchema: Schema<PodSecurityContext> = podSecurityContext;

const securityContext = s.message(
  'k8s.io.api.core.v1.SecurityContext',
  'Security settings of one container; they win over those of the pod.',
  {
    capabilities: optional(1, CapabilitiesSchema, 'Changes of the Linux capabilities.'),
    privileged: optional(2, s.bool(), 'True grants all privileges of root on the host.', {
      presence: true,
    }),
    seLinuxOptions: optional(3, SELinuxOptionsSchema, 'SELinux label.'),
    windowsOptions: optional(10, WindowsSecurityContextOptionsSchema, 'Settings for Windows.'),
    runAsUser: optional(4, s.int64(), 'User ID of the first process.', { presence: true }),
    runAsGroup: optional(8, s.int64(), 'Group ID of the first process.', { presence: true }),
    runAsNonRoot: optional(5, s.bool(), 'True refuses to start as user 0.', { presence: true }),
    readOnlyRootFilesystem: optional(6, s.bool(), 'True mounts the root file system read-only.', { presence: true }),
    allowPrivilegeEscalation: optional(7, s.bool(), 'False forbids processes to gain more rights than their parent.', {
      presence: true,
    }),
    procMount: optional(
      9,
      s.string({ values: ['Default', 'Unmasked'] }),
      'How /proc is mounted: Default or Unmasked.',
      { presence: true },
    ),
    seccompProfile: optional(11, SeccompProfileSchema, 'Which system calls are allowed.'),
    appArmorProfile: optional(12, AppArmorProfileSchema, 'AppArmor profile.'),
  },
);
export interface SecurityContext extends Infer<typeof securityContext> {}
export const SecurityContextSchema: Schema<SecurityContext> = securityContext;
