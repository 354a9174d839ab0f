import { bool, duration, text } from '@keelson/core/internal';
import { option } from './option.ts';

export const accessOptions = [
  option(
    'anonymous-auth',
    bool,
    true,
    'Accepts requests without credentials as user system:anonymous in group system:unauthenticated.',
  ),
  option('authentication-token-webhook', bool, false, 'Authenticates bearer tokens with the TokenReview API.'),
  option('authentication-token-webhook-cache-ttl', duration, 120_000, 'How long token reviews are cached.'),
  option('authorization-mode', text, 'AlwaysAllow', 'AlwaysAllow, or Webhook for the SubjectAccessReview API.'),
  option(
    'authorization-webhook-cache-authorized-ttl',
    duration,
    300_000,
    'How long reviews that allowed a request are cached.',
  ),
  option(
    'authorization-webhook-cache-unauthorized-ttl',
    duration,
    30_000,
    'How long reviews that denied a request are cached.',
  ),
  option(
    'client-ca-file',
    text,
    '',
    "Certificate authorities that client certificates are verified with; the user is the certificate's CommonName.",
    {
      shownDefault: 'none',
    },
  ),
] as const;
