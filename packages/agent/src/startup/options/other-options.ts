import { bool, float, text } from '@keelson/core/internal';
import { defaultRootDir } from '../../base/agent-name.ts';
import { flagOnly, option } from './option.ts';
import { int32, mapStringBool, version } from './value-types.ts';

const none = { shownDefault: 'none' };

export const otherOptions = [
  flagOnly('config', text, '', 'Configuration file; needs the gate AgentConfigFile.', none),
  option(
    'dynamic-config-dir',
    text,
    '',
    'Directory of downloaded configurations; enables dynamic configuration; needs the gate DynamicAgentConfig.',
    none,
  ),
  option('root-dir', text, defaultRootDir, "Directory of the agent's files, such as mounted volumes."),
  option('seccomp-profile-root', text, `${defaultRootDir}/seccomp`, 'Directory of seccomp profiles.'),
  option(
    'lock-file',
    text,
    '',
    'File that is locked while the agent runs; the start waits until the lock is free.',
    none,
  ),
  option('exit-on-lock-contention', bool, false, 'Exits when another process requests the lock file.'),
  option('event-qps', int32, 5, 'Average limit of events created per second; 0 disables the limit.'),
  option('event-burst', int32, 10, 'Maximum burst of created events; has no effect when --event-qps is 0.'),
  option(
    'chaos-chance',
    float,
    0,
    'Above 0: probability of injected errors and delays of requests to the API server. For tests.',
    none,
  ),
  option(
    'really-crash-for-testing',
    bool,
    false,
    'Ends the process on an uncaught error instead of logging the error. For tests.',
  ),
  option(
    'feature-gates',
    mapStringBool,
    new Map() as ReadonlyMap<string, boolean>,
    'Turns features on or off, name=true or name=false.',
    {
      shownDefault: 'see feature gates',
    },
  ),
  flagOnly('version', version, 'none', 'Prints the version and exits; raw prints all details of the version.', none),
] as const;
