import { bool, duration, text } from '@keelson/core/internal';
import { defaultRootDir } from '../../base/agent-name.ts';
import { option } from './option.ts';
import { int32, ip } from './value-types.ts';

const bootstrapHelp =
  'File with which a client certificate is requested when that of --clusterconfig is missing, unusable or expired.';

export const servingOptions = [
  option(
    'address',
    ip,
    '0.0.0.0',
    'Address that the agent serves on; 0.0.0.0 is every IPv4 interface, :: every IPv6 one.',
  ),
  option('port', int32, 10_250, 'Port that the agent serves on.'),
  option('read-only-port', int32, 10_255, 'Port without authentication or authorization that only reads; 0 closes it.'),
  option('healthz-bind-address', ip, '127.0.0.1', 'Address of the health endpoint.'),
  option('healthz-port', int32, 10_248, 'Port of the local health endpoint; 0 closes it.'),
  option('stats-port', int32, 4194, 'Port of the local endpoint of container statistics; 0 closes it.'),
  option('enable-server', bool, true, "Serves the agent's API on --port."),
  option('enable-debugging-handlers', bool, true, 'Serves logs, and endpoints that run containers and commands.'),
  option('tls-cert-file', text, '', 'Certificate for HTTPS, intermediates appended.', { shownDefault: 'none' }),
  option('tls-private-key-file', text, '', 'Key of --tls-cert-file.', { shownDefault: 'none' }),
  option(
    'cert-dir',
    text,
    `${defaultRootDir}/pki`,
    'Directory of TLS certificates, where a self-signed pair is created; has no effect when both TLS files are given.',
  ),
  option(
    'clusterconfig',
    text,
    `${defaultRootDir}/clusterconfig`,
    'File with the address of the API server and the credentials for it.',
  ),
  option('bootstrap-clusterconfig', text, '', bootstrapHelp, { shownDefault: 'none' }),
  option('experimental-bootstrap-clusterconfig', text, '', bootstrapHelp, {
    shownDefault: 'none',
    deprecated: 'use --bootstrap-clusterconfig',
  }),
  option('rotate-certificates', bool, false, 'Renews the client certificate before it expires.'),
  option(
    'bootstrap-checkpoint-path',
    text,
    '',
    'Directory in which pods are saved for a start without the API server.',
    {
      shownDefault: 'none',
    },
  ),
  option(
    'streaming-connection-idle-timeout',
    duration,
    4 * 3_600_000,
    'How long a streaming connection may be idle before it is closed; 0 disables the timeout.',
  ),
  option(
    'contention-profiling',
    bool,
    false,
    'Measures delays of the event loop, which /debug/pprof/contention reports.',
  ),
] as const;
