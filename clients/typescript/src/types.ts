// Generated from the OpenAPI document by internal/tools/clienttypes. Do not edit.

/** An `http` or `https` address of a public server, without user name or password. */
export type Address = string;

export type AnswerRequestsRequest = {
  /** Whether to approve or reject them. */
  "approve": boolean;
  "group_id": GroupId;
  "participants": Members;
};

/** A person by phone number with country code. `@c.us` and `@s.us` mean the same. */
export type AnyContactId = string;

/** A phone number with country code, in digits. Spaces and the characters `+ - . ( )` are ignored. */
export type AnyPhoneNumber = string;

/** The address of an audio file. */
export type AudioAddress = string;

/** The bare id of a message. Send it as `reply_to` to reply. */
export type BareId = string;

export type BlockAnswer = {
  "data": {
    "blocked": boolean;
    "contact_id": ContactId;
  };
  "message": Sentence;
  "success": Success;
};

export type BlockRequest = {
  /** Whether to block or unblock the contact. */
  "blocked": boolean;
  "contact_id": AnyContactId;
};

/** A boolean. The server also accepts `"true"`, `"false"`, `"1"`, `"0"`, 1 and 0. */
export type BooleanLike = boolean;

export type CallAnswer = {
  "data": {
    /** Of the call. */
    "id": string;
  };
  "message": Sentence;
  "success": Success;
};

export type CallEndedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventCallEnd;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "call.ended";
};

export type CallReceivedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventCall;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "call.received";
};

export type CallRequest = {
  "action": "start" | "end";
  /** The call to end. */
  "id"?: string;
  /** Whether it is a video call. */
  "video"?: boolean;
};

export type Caption = string;

export type ChannelCode = string;

/** The code of a channel; empty for what belongs to no channel. */
export type ChannelCodeOrNone = string;

export type ChannelNoticeEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventNotice;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "channel.notice";
};

export type ChannelPairingEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventPairing;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "channel.pairing";
};

export type ChannelRestrictedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventRestricted;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "channel.restricted";
};

/** The status of a channel. | Value | Meaning | |---|---| | `STOPPED` | Someone stopped it. | | `STARTING` | It is connecting for the first time since it was started. Sends are accepted and wait. | | `SCAN_QR_CODE` | It waits for a person to pair it. | | `WORKING` | Connected, with recent evidence. | | `RECONNECTING` | It lost the connection and is reconnecting by itself. Sends are accepted and wait. | | `LOGGED_OUT` | The account removed this device. A person must pair it again. | | `FAILED` | It cannot work until someone acts. | */
export type ChannelStatus = "STOPPED" | "STARTING" | "SCAN_QR_CODE" | "WORKING" | "RECONNECTING" | "LOGGED_OUT" | "FAILED";

export type ChannelStatusEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventChannel;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "channel.status";
};

export type Chat = {
  "archived": boolean;
  /** The contact; missing in a group. */
  "contact_id"?: ContactId;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The last message; missing if there is none any more. */
  "last"?: FoundMessage;
  /** How many messages it has. */
  "messages": number;
  /** The name of the contact or group. Empty if it is not known. */
  "name": string;
  /** The time of the newest message. */
  "timestamp": Timestamp;
  "window_until"?: WindowUntil;
};

/** A message. It has the same fields in chats, searches and events; what it does not have is missing. */
export type ChatMessage = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id"?: ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  "waiting"?: Waiting;
};

export type ChatsAnswer = {
  "data": Array<Chat>;
  "message": Sentence;
  "meta": ChatsMeta;
  "success": Success;
};

/** The position of this page in the list. */
export type ChatsMeta = {
  /** Missing if the request had a `cursor`. */
  "current_page"?: number;
  "has_next_page": boolean;
  "has_prev_page": boolean;
  /** The next `cursor`; null if there are no more chats. */
  "next_cursor": string | null;
  "per_page": number;
  "total": number;
  "total_pages": number;
};

export type ClockAnswer = {
  "data": {
    /** The channel's time now. */
    "timestamp": Timestamp;
  };
  "message": Sentence;
  "success": Success;
};

export type ClockRequest = {
  /** By how many seconds; at most 366 days. */
  "advance": number;
};

export type CodeAnswer = {
  "data": {
    /** The channel to check the code on, if the request did not name it in `X-Channel`. */
    "channel"?: ChannelCode;
    "contact_id": ContactId;
    "expired_at": Timestamp;
    /** The code's id. Events name it. */
    "id": string;
    "status": "PENDING";
    "timestamp": Timestamp;
  };
  "message": Sentence;
  "success": true;
};

export type CodeRequest = {
  /** Use capital letters instead of small ones. The default is false. */
  "allCapital"?: boolean;
  /** With a Global token and without `X-Channel`: the channels that may carry the code, in order. The code belongs to the first one. When a channel cannot be used, does not send the code within 10 seconds, or fails for a reason that another channel may not have, the next one carries the same code. They must be all on the sandbox or all on real networks. */
  "channels"?: Array<ChannelCode>;
  "contact_id": AnyContactId;
  /** How many seconds the code is valid. The default is 300. */
  "expires"?: number;
  /** How many characters the code has. The default is 6. */
  "length"?: number;
  /** The application's name, as the message shows it. Without it, the channel's name. No web address, and at most 4 digits. */
  "name"?: string;
  /** Use letters, without look-alikes (0 o 1 l i). The default is false. */
  "useLetter"?: boolean;
  /** Use digits. Digits and letters must not both be off. The default is true. */
  "useNumber"?: boolean;
};

export type CodeTry = {
  /** What the contact typed. Anything that cannot be a code counts as a wrong attempt. */
  "code": string;
  "contact_id": AnyContactId;
};

export type CodeTryAnswer = {
  "data": {
    /** How many wrong attempts are left. */
    "attempts_left": number;
    /** The channels that had their turn to carry the code, in order. Only if the request for the code had `channels`. */
    "channels_tried"?: Array<ChannelCode>;
    /** The code's id; null if none is open. */
    "id": string | null;
    /** `APPROVED`: the code is correct. `INVALID`: it is wrong, or none is open. `EXPIRED`: it is too late. `LOCKED`: there were too many wrong attempts. */
    "status": "APPROVED" | "INVALID" | "EXPIRED" | "LOCKED";
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** Whether the code is correct. */
  "success": boolean;
};

export type Contact = {
  /** The same as `id`. */
  "contact_id": ContactId;
  "id": ContactId;
  /** Whether the channel blocks the contact. On the sandbox network also whether the simulated phone blocks the channel. */
  "is_blocked": boolean;
  "is_business": boolean;
  "last_seen_at": Timestamp | null;
  /** `""` if it is not known. */
  "name": string;
  /** Null while the contact hides it. The id of such a contact is 0 and 15 to 24 digits that the network chooses. */
  "number": PhoneNumber | null;
  /** The name by which people find the contact; null if there is none or it is not known. */
  "username": string | null;
};

export type ContactCards = Array<{
  "name": string;
  /** The card in vCard format. */
  "vcard": string;
}>;

/** A person by phone number with country code. */
export type ContactId = string;

export type ContactInfo = {
  /** What the contact says about themselves. */
  "about": string;
  /** The same as `id`. */
  "contact_id": ContactId;
  /** After how many seconds new messages of the chat disappear; 0 if they stay. */
  "disappearing_seconds": number;
  "id": ContactId;
  /** Whether the channel blocks the contact. On the sandbox network also whether the simulated phone blocks the channel. */
  "is_blocked": boolean;
  "is_business": boolean;
  "last_seen_at": Timestamp | null;
  /** `""` if it is not known. */
  "name": string;
  /** Null while the contact hides it. The id of such a contact is 0 and 15 to 24 digits that the network chooses. */
  "number": PhoneNumber | null;
  /** Whether the number has an account. */
  "on_network": boolean;
  "picture_url": string | null;
  /** The same as `picture_url`. */
  "profile_picture_url": string | null;
  /** The name by which people find the contact; null if there is none or it is not known. */
  "username": string | null;
  "window_until"?: WindowUntil;
};

export type ContactInfoAnswer = {
  "data": ContactInfo;
  "message": Sentence;
  "success": Success;
};

export type ContactOptedInEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOptOut;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "contact.opted_in";
};

export type ContactOptedOutEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOptOut;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "contact.opted_out";
};

export type ContactRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
};

export type ContactsAnswer = {
  "data": Array<Contact>;
  "message": Sentence;
  "meta": Meta;
  "success": Success;
};

export type ContactsRequest = {
  "contact_id"?: ToContact;
  "contacts": ContactsToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
};

/** Contact cards. */
export type ContactsToSend = Array<{
  "name": string;
  /** Phone numbers with their country code. */
  "numbers": Array<string>;
}>;

/** A position. Treat it as opaque. */
export type Cursor = string;

export type CursorAnswer = {
  "data": {
    "cursor": Cursor;
  };
  "message": Sentence;
  "success": Success;
};

export type DisappearingRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  "seconds": DisappearingSeconds;
};

/** After how many seconds new messages disappear: a day, a week or 90 days; 0 if they stay. */
export type DisappearingSeconds = 0 | 86400 | 604800 | 7776000;

export type DoneAnswer = {
  /** Empty. */
  "data": Record<string, unknown>;
  "message": Sentence;
  "success": Success;
};

export type EditRequest = {
  /** The new text. */
  "message": string;
  "message_id": MessageRef;
};

/** When its text was last changed; null if never. */
export type EditedAt = Timestamp | null;

export type Error = {
  "code": ErrorCode;
  /** A sentence that says what is wrong and what to do. It may change. */
  "message": string;
};

/** The kind of error. It never changes, so decide by it. */
export type ErrorCode = "bad_request" | "channel_not_ready" | "unsupported" | "unauthenticated" | "token_expired" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "too_large" | "invalid" | "rate_limited" | "queue_full" | "storage_limit" | "storage_full" | "internal" | "unavailable";

/** Something that happened, as streams and webhooks report it. `type` says what `data` is. */
export type Event = MessageReceivedEvent | MessageStatusEvent | MessageReactionEvent | MessageDeletedEvent | MessageEditedEvent | MessageMediaEvent | MessageSentOnPhoneEvent | PollVoteEvent | ChannelStatusEvent | ChannelRestrictedEvent | ChannelNoticeEvent | ChannelPairingEvent | ContactOptedOutEvent | ContactOptedInEvent | CallReceivedEvent | CallEndedEvent | MessageUnreadableEvent | OTPApprovedEvent | OTPFailedEvent | OTPExpiredEvent | OTPPausedEvent | OTPGuessingEvent | GroupChangedEvent | WebhookGapEvent | WebhookTestEvent;

/** What `call.received` contains. */
export type EventCall = {
  /** Who calls. */
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** The group; missing in a call to the account alone. */
  "group_id"?: GroupId;
  "group_name"?: KnownName;
  /** Of the call. Both events have it. */
  "id": string;
  /** Whether it is a video call. */
  "video": boolean;
};

/** What `call.ended` contains. */
export type EventCallEnd = {
  /** Who calls. */
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** The group; missing in a call to the account alone. */
  "group_id"?: GroupId;
  "group_name"?: KnownName;
  /** Of the call. Both events have it. */
  "id": string;
  /** How it ended: rejected, accepted on another device, or missed or finished. */
  "reason": "rejected" | "accepted" | "ended";
};

/** A channel that has another status. */
export type EventChannel = {
  "name": string;
  "number": string;
  "reason": string;
  "since": Timestamp;
  "status": ChannelStatus;
  "was": ChannelStatus;
};

/** Events were removed from the log before a webhook got them. */
export type EventGap = {
  /** The channel of the webhook; empty: it is for all channels. */
  "channel": ChannelCodeOrNone;
  /** The first seq that was removed. */
  "from": number;
  /** How many positions of the log were removed. Not all of them need have been events for this webhook. */
  "lost": number;
  /** The last seq that was removed. */
  "to": number;
  /** The webhook that missed them. */
  "webhook": string;
};

/** Members or the name of a group changed. */
export type EventGroup = {
  "added": Array<ContactId>;
  /** Who changed it; missing if the channel did, or if nobody knows. */
  "contact_id"?: ContactId;
  "contact_name"?: KnownName;
  "from_me": FromMe;
  "group_id": GroupId;
  /** The name of the group; `""` if it is not known now. */
  "group_name": KnownName;
  /** The new name; missing if it did not change. */
  "name"?: string;
  /** Whether the channel changed it. */
  "outgoing": boolean;
  /** Who was removed or left. */
  "removed": Array<ContactId>;
};

/** Names an event. It is the same in every stream, webhook and attempt. */
export type EventId = string;

/** The message of a contact, or of a member of a group. */
export type EventInbound = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id": ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  "waiting"?: Waiting;
};

/** The message that an event is about, with the status that the event reports. */
export type EventMessage = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id"?: ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  "waiting"?: Waiting;
};

/** What `channel.notice` contains. */
export type EventNotice = {
  /** Who has another number: the contact with the old one. */
  "contact_id"?: ContactId;
  "contact_name"?: KnownName;
  /** What it is about. More may be added. */
  "kind": "quality" | "limit" | "restriction" | "template" | "number_changed";
  /** The language of the template. */
  "language"?: string;
  /** What the network calls it, for example RED, TIER_2K or PAUSED. */
  "status": string;
  /** The name of a template. */
  "template"?: string;
  /** A sentence. */
  "text": string;
};

/** A one-time code or a login link that was approved or expired. */
export type EventOTP = {
  /** The channels that had their turn to carry the code, in order. Only if the request for the code had `channels`. */
  "channels_tried"?: Array<ChannelCode>;
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** Of the code or the link. */
  "id": string;
};

/** A one-time code or a login link that failed. */
export type EventOTPFailure = {
  /** The channels that had their turn to carry the code, in order. Only if the request for the code had `channels`. */
  "channels_tried"?: Array<ChannelCode>;
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** Of the code or the link. */
  "id": string;
  /** Why it failed. */
  "reason": string;
};

/** Many wrong codes were tried on a channel, over all contacts. */
export type EventOTPGuessing = {
  /** Wrong attempts within the last hour. */
  "tries": number;
};

/** Codes to new contacts pause, because too few of the last ones were approved. */
export type EventOTPPaused = {
  /** How many of them were approved. */
  "approved": number;
  /** Codes that were sent to new contacts in the last 30 minutes, or since the last pause. */
  "codes": number;
  /** When codes to new contacts are sent again. */
  "until": Timestamp;
};

/** What `contact.opted_out` and `contact.opted_in` contain. */
export type EventOptOut = {
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** Whether the contact asked for it with a text. */
  "source": "contact" | "api";
};

/** A step of linking a channel to an account. */
export type EventPairing = {
  /** What to show or type. It is present only while it can be used. */
  "code"?: string;
  /** When the code expires. */
  "expires_at"?: Timestamp;
  /** The number of this QR code, from 1. */
  "n"?: number;
  /** How many QR codes there are before it times out. */
  "of"?: number;
  /** What the account's passkey must sign. */
  "passkey"?: {
    "expires_at": Timestamp;
    /** The WebAuthn options for `navigator.credentials.get`. */
    "request": Record<string, unknown>;
  };
  /** Why it failed, or what to do, in a sentence. */
  "reason"?: string;
  "step": PairingStepName;
};

/** The message that someone reacted to. */
export type EventReaction = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id"?: ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** Who reacted with what. An empty emoji removes the reaction. */
  "reaction": {
    /** Missing if the channel itself reacted. */
    "contact_id"?: ContactId;
    "contact_name"?: KnownName;
    "emoji": string;
    "from_me": FromMe;
    /** Whether the channel itself reacted. */
    "outgoing": boolean;
  };
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  "waiting"?: Waiting;
};

/** What `channel.restricted` contains. */
export type EventRestricted = {
  /** Whether the network prevents the account from writing to new contacts. */
  "restricted": boolean;
  /** Until when; null if that is unknown. */
  "until": string | null;
};

/** What `webhook.test` contains. */
export type EventTest = {
  "message": Sentence;
  /** The webhook being tested. */
  "webhook_id": string;
};

/** What happened. A message arrived, changed its status, got a reaction, or was edited or deleted; the file of an inbound message was fetched or could not be; someone voted; the status of a channel changed or its pairing reached another step; a one-time code or login link was approved, failed or expired; codes to new contacts pause, or many wrong codes were tried; events were removed before a webhook got them; the members or the name of a group changed; a contact wants no more messages, or wants them again; someone calls, or the call ended; a message arrived that cannot be shown; the network says something about the account. */
export type EventType = "message.received" | "message.status" | "message.reaction" | "message.deleted" | "poll.vote" | "channel.status" | "channel.pairing" | "otp.approved" | "otp.failed" | "otp.expired" | "otp.paused" | "otp.guessing" | "message.media" | "webhook.gap" | "group.changed" | "message.edited" | "channel.restricted" | "message.sent_on_phone" | "contact.opted_out" | "contact.opted_in" | "call.received" | "call.ended" | "message.unreadable" | "channel.notice";

/** What `message.unreadable` contains. If the message can be read later, `message.received` follows with the same id. */
export type EventUnreadable = {
  /** Who wrote it. */
  "contact_id": ContactId;
  "contact_name": KnownName;
  /** The group; missing in a direct chat. */
  "group_id"?: GroupId;
  "group_name"?: KnownName;
  "id": BareId;
  "message_id": MessageId;
  /** It could not be decrypted and is asked for again, or only the phone of the account can open it. */
  "reason": "undecryptable" | "view_once";
};

/** The poll that someone voted in. */
export type EventVote = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id"?: ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  /** Everything that someone has chosen in a poll now. */
  "vote": {
    "contact_id": ContactId;
    "contact_name": KnownName;
    "options": Array<string>;
  };
  "waiting"?: Waiting;
};

export type EventsAnswer = {
  "data": Array<Event>;
  "message": Sentence;
  "meta": SearchMeta;
  "success": Success;
};

export type FaultRequest = {
  /** | Value | What happens | |---|---| | `refuse` | The network refuses the send, for `reason`. | | `late` | The confirmation comes late. | | `twice` | The message reaches the phone twice. | | `drop_socket` | The connection breaks before the confirmation. | | `log_out` | The account removes this device. | | `reachout_limit` | The network refuses the send, and until `seconds` have passed first messages to other contacts wait with the reason `restricted`. | | `unknown` | The message arrives and the response is lost. Unless a receipt comes within 10 seconds, it is sent again. | | `window_closed` | Refused with `outside_window`. | | `template_paused` | Refused with `template`. | | `held_back` | Refused with `held_back`. | | `passkey` | The next pairing of the logged out channel asks for a passkey, as WhatsApp can. | */
  "fault": "refuse" | "late" | "twice" | "drop_socket" | "log_out" | "reachout_limit" | "unknown" | "window_closed" | "template_paused" | "held_back" | "passkey";
  /** The sentence with which the network refuses, for `refuse`. */
  "reason"?: string;
  /** How long the account is restricted (`reachout_limit`); 0 if the network does not say until when. The default is a day. */
  "seconds"?: number;
  /** For how many sends, or pairings (`passkey`). The default is 1. */
  "times"?: number;
  /** Only sends to this number. */
  "to"?: AnyPhoneNumber;
  /** Only this kind. By default every message matches, and no operation. */
  "type"?: "text" | "image" | "video" | "file" | "voice" | "sticker" | "location" | "poll" | "contact" | "template" | "reaction" | "edit" | "seen" | "delete" | "star" | "archive" | "read" | "disappearing";
};

export type FaultsAnswer = {
  "data": Array<{
    "fault": "refuse" | "late" | "twice" | "drop_socket" | "log_out" | "reachout_limit" | "unknown" | "window_closed" | "template_paused" | "held_back" | "passkey";
    /** What a refusal says. */
    "reason": string | null;
    /** How long the account is restricted; null by default. */
    "seconds": number | null;
    /** How many more sends it affects. */
    "times": number;
    /** Only sends to this number. */
    "to": string | null;
    /** Only sends of this kind. */
    "type": string | null;
  }>;
  "message": Sentence;
  "success": Success;
};

/** Where the file is: an `http` or `https` address of at most 2,048 characters, the id of an upload or of another file of the channel (`med_…`), or a `data:` address of at most 700 KiB. */
export type FileAddress = string;

export type FileAnswer = {
  "data": {
    "error"?: SendError;
    "id": BareId;
    "message": {
      "caption": string;
      "details": MediaDetails;
      /** The address that it was fetched from. */
      "file": string;
    };
    "message_id": MessageId;
    "status": MessageStatus;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** False when the network refused the message. */
  "success": boolean;
};

/** A file by its address, or the file itself. */
export type FileOfPhone = {
  /** The bytes of the file in base64, instead of an address. The whole request has at most 1 MiB. A voice note may be what a browser recorded: Ogg or WebM with Opus becomes Ogg with Opus, and so does anything else if the server has ffmpeg. */
  "data"?: string;
  /** The name of the file. */
  "filename"?: string;
  /** The media type of a file with an address. By default it is found from the content. */
  "mimeType"?: string;
  "url"?: Address;
};

export type FileRequest = {
  "caption"?: Caption;
  "contact_id"?: ToContact;
  "file": FileToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
};

export type FileToSend = {
  /** The name shown to the contact. The default is the name in the address. */
  "filename"?: string;
  /** The media type. By default it is found from the content. */
  "mimeType"?: string;
  "url": FileAddress;
};

export type ForwardRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  "message_id": MessageRef;
};

export type FoundMessage = {
  /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
  "body": string;
  "channel": ChannelCode;
  /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
  "choice"?: {
    /** The id that the business gave it, or the code of an invitation. */
    "id": string;
    /** Of an order. */
    "token"?: string;
    "type": "button" | "list" | "form" | "order" | "invite";
  };
  /** The contact. In a group it is the author, and missing if the channel wrote the message. */
  "contact_id"?: ContactId;
  "contact_name": KnownName;
  "contacts"?: ContactCards;
  /** How often the network has it, once it confirmed more than one copy. Missing if not. */
  "copies"?: number;
  /** When its text was last changed. */
  "edited_at"?: Timestamp;
  "error"?: SendError;
  /** It is shown as forwarded. Missing if not. */
  "forwarded"?: boolean;
  "from_me": FromMe;
  /** The group; missing in a chat with a contact. */
  "group_id"?: GroupId;
  /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
  "group_name"?: KnownName;
  "id": BareId;
  /** Whether it carries a file. */
  "is_media": boolean;
  "location"?: Place;
  "media"?: MessageMedia;
  /** The contacts that the text names. */
  "mentions"?: Array<ContactId>;
  "message_id": MessageId;
  /** True if it carries a one-time code; otherwise missing. */
  "otp"?: boolean;
  /** Whether the channel sent it: `from_me` as a boolean. */
  "outgoing": boolean;
  "poll"?: PollState;
  /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
  "possible_duplicate"?: boolean;
  "quoted"?: Quoted;
  /** The current emojis. */
  "reactions": Array<string>;
  "reply_to"?: BareId;
  /** The id of the request that sent it; missing if none did. */
  "request_id"?: string;
  /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
  "sent_as"?: "template";
  /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
  "source"?: "phone";
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  /** When the status last changed. */
  "updated_at": Timestamp;
  "waiting"?: Waiting;
};

export type FoundMessagesAnswer = {
  "data": Array<FoundMessage>;
  "message": Sentence;
  "meta": SearchMeta;
  "success": Success;
};

/** Whether the channel did it, as a string. In many languages the string `"false"` counts as true: use `outgoing`, the boolean. */
export type FromMe = "true" | "false";

export type GlobalCodeAnswer = {
  "data": {
    /** The channel to check the code on, if the request did not name it in `X-Channel`. */
    "channel": ChannelCode;
    "contact_id": ContactId;
    "expired_at": Timestamp;
    /** The code's id. Events name it. */
    "id": string;
    "status": "PENDING";
    "timestamp": Timestamp;
  };
  "message": Sentence;
  "success": true;
};

export type Group = {
  "actions": {
    /** Whether the channel may add people. */
    "can_add_member": boolean;
    /** Whether an admin must approve new members. */
    "join_approval": boolean;
  };
  "created_at": Timestamp;
  "description": string;
  /** After how many seconds new messages disappear; 0 if they stay. */
  "disappearing_seconds": number;
  "id": GroupId;
  "is_community": boolean;
  /** Whether the channel owns it. */
  "is_owner": boolean;
  "name": string;
  /** Whether only admins may write. */
  "only_admins_send": boolean;
  /** The owner's contact id; `""` if it is not known. */
  "owner": string;
  "participant_count": number;
  /** Whether only admins may change the group's settings. */
  "restricted": boolean;
};

export type GroupAnswer = {
  "data": Group;
  "message": Sentence;
  "success": Success;
};

export type GroupChangedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventGroup;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "group.changed";
};

export type GroupDescriptionRequest = {
  "description": string;
  "group_id": GroupId;
};

/** A group. */
export type GroupId = string;

export type GroupNameRequest = {
  "group_id": GroupId;
  "name": string;
};

/** `file` or `url` is required. */
export type GroupPictureRequest = {
  "file"?: FileToSend;
  "group_id": GroupId;
  /** Other spelling of `file.url`. It is not used if there is a `file`. */
  "url"?: Address;
};

export type GroupRequest = {
  "name": string;
  "participants": Members;
};

/** At least one setting. */
export type GroupSettingsRequest = {
  "group_id": GroupId;
  /** Whether an admin must approve people who join by the link. */
  "join_approval"?: boolean;
  /** Whether only admins may add people. */
  "only_admins_add"?: boolean;
  /** Whether only admins may change the name, description and settings. */
  "only_admins_edit"?: boolean;
  /** Whether only admins may write. */
  "only_admins_send"?: boolean;
};

export type GroupsAnswer = {
  "data": Array<Group>;
  "message": Sentence;
  "meta": Meta;
  "success": Success;
};

export type HealthAnswer = {
  "data": {
    "code": ChannelCode;
    "name": string;
    "network": NetworkName;
    "phone": {
      "name": string;
      /** The channel's own number; 0 before it is known. */
      "number": number;
    };
    /** Why the status is what it is; `""` while all is well. */
    "reason": string;
    /** Whether the network prevents this account from writing to new contacts. First messages wait meanwhile. */
    "restricted"?: boolean;
    /** Until when the network prevents this account from writing to new contacts, if it said so. */
    "restricted_until"?: Timestamp;
    /** Whether its phones are simulated. Nothing reaches a real one. */
    "simulated": boolean;
    /** When the status last changed. */
    "since": Timestamp;
    /** When the channel last became WORKING; `""` if it never was. */
    "start_at": string;
    "status": ChannelStatus;
    "timestamp": Timestamp;
    /** For how long the channel has been WORKING. */
    "up_time": string;
    /** How many messages wait to be sent. */
    "waiting": number;
  };
  "message": Sentence;
  "success": Success;
};

export type HistoryAnswer = {
  "data": Array<ChatMessage>;
  "message": Sentence;
  "meta": Meta;
  /** False when the network refused to archive the chat. */
  "success": boolean;
};

export type ImageAnswer = {
  "data": {
    "error"?: SendError;
    "id": BareId;
    "message": {
      "caption": string;
      "details": MediaDetails;
      /** The address that it was fetched from. */
      "image": string;
    };
    "message_id": MessageId;
    "status": MessageStatus;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** False when the network refused the message. */
  "success": boolean;
};

/** `file` or `url` is required. */
export type ImageRequest = {
  "caption"?: Caption;
  "contact_id"?: ToContact;
  "file"?: FileToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
  /** Other spelling of `file.url`. It is not used if there is a `file`. */
  "url"?: Address;
};

export type InviteAnswer = {
  "data": {
    "group_id": GroupId;
    "link": string;
  };
  "message": Sentence;
  "success": Success;
};

export type JoinRequest = {
  /** The invite link, or the code at its end. */
  "link": string;
};

export type JoinRequestsAnswer = {
  "data": Array<{
    /** When they asked. */
    "at": Timestamp;
    "id": ContactId;
  }>;
  "message": Sentence;
  "success": Success;
};

export type JoinedAnswer = {
  "data": {
    "group_id": GroupId;
    /** Whether an admin must approve the channel first. */
    "waits": boolean;
  };
  "message": Sentence;
  "success": Success;
};

/** The channel's name for the contact; `""` if that is not known now. */
export type KnownName = string;

/** Degrees north, -90 to 90. */
export type Latitude = string;

export type LeaveRequest = {
  "group_id": GroupId;
};

export type LeftAnswer = {
  "data": {
    "group_id": GroupId;
  };
  "message": Sentence;
  "success": Success;
};

export type LinkAnswer = {
  "data": {
    /** Opens the chat in the app, if it is installed. */
    "app_uri": string;
    /** The code in the text of the link. Nobody types it. */
    "code": string;
    "contact_id": ContactId;
    "expired_at": Timestamp;
    "id": LinkId;
    /** Opens the chat. On the sandbox network it is a page with the simulated phone. */
    "link": string;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  "success": Success;
};

export type LinkId = string;

export type LinkRequest = {
  /** Your addresses, which Parley calls with GET. It keeps their own query and adds `contact_id`, `event_id`, `id`, `reason` (on failure), `status` (`success` or `failed`), `timestamp` and `signature`. */
  "callback"?: {
    /** Called when an attempt failed. The link may still be approved later. */
    "failed": Address;
    /** Called once the link is approved. */
    "success": Address;
  };
  "contact_id": AnyContactId;
  /** How long the link is valid, in whole seconds. */
  "expires": number;
  /** Your own texts, all four of them. The defaults, in English, hold without this object and if all its texts are null. */
  "message"?: {
    /** The reply to the sender after the link expired. */
    "expired": LinkText;
    /** The reply to the sender when it failed. */
    "failed": LinkText;
    /** What the contact sends to the channel. Without `##code##`, the code is appended. Put a space before or after the code. */
    "prompt": LinkText;
    /** The reply to the contact when the link is approved. */
    "success": LinkText;
  };
  /** The name of your application, as people see it. The default is the channel's name. It may contain no web address and no more than 4 digits. */
  "name"?: string;
};

export type LinkStateAnswer = {
  "data": {
    "channel": ChannelCode;
    "contact_id": ContactId;
    /** When it ended; null while it is open. */
    "ended_at": Timestamp | null;
    "expired_at": Timestamp;
    "id": LinkId;
    /** The name of the application. */
    "name": string;
    /** `PENDING` while it is open. `INVALID`: a newer link replaced it. `LOCKED`: the contact sent five texts with the code that were not the prompt. */
    "status": "PENDING" | "APPROVED" | "INVALID" | "EXPIRED" | "LOCKED";
    /** When it was created. */
    "timestamp": Timestamp;
    /** How often the contact sent the code with another text. */
    "tries": number;
    /** How often another number sent the code. */
    "tries_by_others": number;
  };
  "message": Sentence;
  "success": Success;
};

/** A text; `##code##` and `##name##` stand for the code and the name. Control characters are not allowed, except line breaks and tabs, and neither are characters that change the direction of text. */
export type LinkText = string;

export type ListenersAnswer = {
  "data": {
    /** Open streams. */
    "listeners": number;
    "webhooks": number;
  };
  "message": Sentence;
  "success": Success;
};

export type LocationRequest = {
  /** The address of the place. */
  "address"?: string;
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  "latitude": Latitude;
  "longitude": Longitude;
  "reply_to"?: ReplyTo;
  /** The name of the place. */
  "title"?: string;
};

/** Degrees east, -180 to 180. */
export type Longitude = string;

/** The file as it was fetched. All values are strings. */
export type MediaDetails = {
  "fileSha256": string;
  /** In pixels. */
  "height": string;
  "mediaKey": string;
  "mimetype": string;
  "timestamp": Timestamp;
  /** In pixels. */
  "width": string;
};

export type MediaId = string;

/** Whether the file is available: `pending` while Parley fetches it, for up to 24 hours; then `ready` or `failed`. */
export type MediaStatus = "pending" | "ready" | "failed";

/** A contact id. `@c.us`, `@s.us` and `@s.whatsapp.net` mean the same. */
export type MemberId = string;

/** Contact ids, or objects with one as `id`. */
export type Members = Array<MemberId | {
  "id": MemberId;
}>;

export type MembersAnswer = {
  "data": {
    "group_id": GroupId;
    "participants": Array<{
      "error"?: SendError;
      "id": ContactId;
    }>;
  };
  "message": Sentence;
  /** False when someone could not be added or removed. */
  "success": boolean;
};

export type MembersRequest = {
  "group_id": GroupId;
  "participants": Members;
};

export type MessageDeletedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventMessage;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.deleted";
};

export type MessageEditedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventMessage;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.edited";
};

/** The full id of a message: whether the channel sent it, the contact or the group, and the bare id. */
export type MessageId = string;

/** The file of a message; missing if it was deleted or purged. Parley fetches an inbound file after it has stored the message. While the file is `pending`, everything but the `id` comes from the sender. The event `message.media` reports that it is `ready` or has `failed`. */
export type MessageMedia = {
  /** In seconds. */
  "duration"?: number;
  "filename"?: string;
  /** In pixels. */
  "height"?: number;
  "id": MediaId;
  "mimetype": string;
  /** Why it has `failed`, in a sentence. */
  "reason"?: string;
  /** In hex. */
  "sha256"?: string;
  /** In bytes. */
  "size": number;
  "status": MediaStatus;
  /** Where to download it, with a token of the channel. */
  "url": string;
  /** In pixels. */
  "width"?: number;
};

export type MessageMediaEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventInbound;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.media";
};

export type MessageReactionEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventReaction;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.reaction";
};

export type MessageReceivedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventInbound;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.received";
};

/** The full id of a message of this channel, or its bare id if only one message has it. */
export type MessageRef = string;

export type MessageRequest = {
  "message_id": MessageRef;
};

export type MessageSentOnPhoneEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventMessage;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.sent_on_phone";
};

/** The status of a message. It only moves forward. | Value | Meaning | |---|---| | `PENDING` | Safely accepted, not yet confirmed by the network. | | `SENT` | The network has it. | | `DELIVERED` | It reached the phone. | | `READ` | The contact has seen it, or an inbound message was marked as seen. | | `PLAYED` | The contact played it. | | `FAILED` | It was not sent, or the network reported after `SENT` that it failed. | | `DELETED` | It was deleted for everyone. | | `RECEIVED` | Inbound, not yet marked as seen. | */
export type MessageStatus = "PENDING" | "SENT" | "DELIVERED" | "READ" | "PLAYED" | "FAILED" | "DELETED" | "RECEIVED";

export type MessageStatusEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventMessage;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.status";
};

export type MessageType = "text" | "image" | "video" | "file" | "voice" | "sticker" | "location" | "poll" | "contact" | "template";

export type MessageUnreadableEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventUnreadable;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "message.unreadable";
};

/** The position of this page in the list. */
export type Meta = {
  "current_page": number;
  "has_next_page": boolean;
  "has_prev_page": boolean;
  "per_page": number;
  "total": number;
  "total_pages": number;
};

/** The name of a network. `networks` of `GET /api/manage/server` lists those of the server. */
export type NetworkName = string;

/** `cursor` of the request for the next page; null if there are no more. */
export type NextCursor = string | null;

export type OTPApprovedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOTP;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "otp.approved";
};

export type OTPExpiredEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOTP;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "otp.expired";
};

export type OTPFailedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOTPFailure;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "otp.failed";
};

export type OTPGuessingEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOTPGuessing;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "otp.guessing";
};

export type OTPPausedEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventOTPPaused;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "otp.paused";
};

export type OneMessageAnswer = {
  "data": {
    /** The text, caption or title; `""` if there is none, or it was deleted or erased. In searches that of a one-time code is hidden. */
    "body": string;
    "channel": ChannelCode;
    /** What the contact tapped or ordered, if the text is that of a button, list, form, order or invitation. Missing if not. */
    "choice"?: {
      /** The id that the business gave it, or the code of an invitation. */
      "id": string;
      /** Of an order. */
      "token"?: string;
      "type": "button" | "list" | "form" | "order" | "invite";
    };
    /** The contact. In a group it is the author, and missing if the channel wrote the message. */
    "contact_id"?: ContactId;
    "contact_name": KnownName;
    "contacts"?: ContactCards;
    /** How often the network has it, once it confirmed more than one copy. Missing if not. */
    "copies"?: number;
    /** When its text was last changed. */
    "edited_at"?: Timestamp;
    "error"?: SendError;
    /** It is shown as forwarded. Missing if not. */
    "forwarded"?: boolean;
    "from_me": FromMe;
    /** The group; missing in a chat with a contact. */
    "group_id"?: GroupId;
    /** The name of the group, if there is a `group_id`; `""` if it is not known now. */
    "group_name"?: KnownName;
    "id": BareId;
    /** Whether it carries a file. */
    "is_media": boolean;
    "location"?: Place;
    "media"?: MessageMedia;
    /** The contacts that the text names. */
    "mentions"?: Array<ContactId>;
    "message_id": MessageId;
    /** True if it carries a one-time code; otherwise missing. */
    "otp"?: boolean;
    /** Whether the channel sent it: `from_me` as a boolean. */
    "outgoing": boolean;
    "poll"?: PollState;
    /** The network may have it twice: its response was lost and it was sent again, or another channel carried the same code. Missing if not. */
    "possible_duplicate"?: boolean;
    "quoted"?: Quoted;
    /** The current emojis. */
    "reactions": Array<string>;
    "reply_to"?: BareId;
    /** The id of the request that sent it; missing if none did. */
    "request_id"?: string;
    /** The network got a template in place of the text, because the contact had not written for 24 hours. Missing if not. */
    "sent_as"?: "template";
    /** The owner of the account wrote it on the phone or on another linked device. Missing on other messages. */
    "source"?: "phone";
    "status": MessageStatus;
    /** Oldest first. */
    "timeline": Array<{
      "at": Timestamp;
      /** True if its text was changed then; missing otherwise. */
      "edited"?: boolean;
      "status": MessageStatus;
    }>;
    "timestamp": Timestamp;
    "type": MessageType;
    /** When the status last changed. */
    "updated_at": Timestamp;
    "waiting"?: Waiting;
  };
  "message": Sentence;
  "success": Success;
};

export type OperationAnswer = {
  "data": {
    "error"?: SendError;
    /** The result; `PENDING` until the network has confirmed it. */
    "status": "EDITED" | "READ" | "DELETED" | "STARRED" | "UNSTARRED" | "UNARCHIVED" | "UNREAD" | "ON" | "OFF" | "PENDING" | "FAILED";
    "timestamp": Timestamp;
    /** What was done. */
    "type": "edit" | "seen" | "delete" | "star" | "un-archive" | "read" | "disappearing";
  };
  "message": Sentence;
  /** False when the network refused it. */
  "success": boolean;
};

export type OptOutChangeAnswer = {
  "data": {
    /** For how many contacts this changed something. */
    "changed": number;
  };
  "message": Sentence;
  "success": Success;
};

/** One contact, or many. */
export type OptOutRequest = {
  "contact_id"?: AnyContactId;
  "contact_ids"?: Array<AnyContactId>;
};

export type OptOutsAnswer = {
  "data": Array<{
    "contact_id": ContactId;
    "contact_name": KnownName;
    "opted_out_at": Timestamp;
  }>;
  "message": Sentence;
  "meta": SearchMeta;
  "success": Success;
};

/** | Step | Meaning | |---|---| | `starting` | Parley is asking the network for a code. A `reason` means that the connection was lost, and a new code follows by itself. | | `qr` | Scan the QR code, number `n` `of` some; the next one follows by itself. | | `code` | Type the code on the phone. | | `wrong_code` | The phone did not accept what was typed. You can type the code again. | | `passkey` | The account asks for its passkey, which must sign `passkey.request`. | | `confirm` | Compare `code` with the one on the phone. | | `paired` | The phone linked it. The channel is WORKING a moment later. | | `timeout` | Nobody scanned or typed a code in time. Pair it again for new codes. | | `failed` | `reason` says why. | */
export type PairingStepName = "starting" | "qr" | "code" | "wrong_code" | "passkey" | "confirm" | "paired" | "timeout" | "failed";

export type ParticipantsAnswer = {
  "data": Array<{
    "id": ContactId;
    "is_admin": boolean;
    "is_owner": boolean;
    "name": string;
  }>;
  "message": Sentence;
  "success": Success;
};

export type Phone = {
  "blocks": boolean;
  "contact_id": ContactId;
  "delay_ms": number;
  "disappearing_seconds": DisappearingSeconds;
  "lid_only": boolean;
  "name": string;
  "number": PhoneNumber;
  "number_hidden": boolean;
  "on_network": boolean;
  "online": boolean;
  "reads": Reads;
};

export type PhoneAnswer = {
  "data": Phone;
  "message": Sentence;
  "success": Success;
};

/** A message on a phone's screen. */
export type PhoneBubble = {
  /** The text, caption or title, or `""`. */
  "body": string;
  /** Digit or letter codes found in the text. */
  "codes": Array<string>;
  /** The other member of the group who wrote it; null if the phone or the channel did. */
  "contact_id": ContactId | null;
  "contacts": ContactCards;
  /** How often the network received it. */
  "copies": number;
  "deleted": boolean;
  "edited_at": EditedAt;
  /** Whether the phone sent it itself. */
  "from_phone": boolean;
  "group_id": GroupId | null;
  "id": BareId;
  /** Links found in the text. */
  "links": Array<string>;
  "location": Place | null;
  "media": {
    "bytes": number;
    "filename": string;
    "height": number;
    "mimetype": string;
    "seconds": number;
    /** Of a voice message. */
    "waveform": Array<number>;
    /** 0 if it is not a picture. */
    "width": number;
  } | null;
  "message_id": MessageId;
  "poll": PollState | null;
  "preview": {
    "description": string;
    /** A JPEG in base64; `""` if there is none. */
    "thumbnail": string;
    "title": string;
    "url": string;
  } | null;
  "reactions": Array<string>;
  "reply_to": BareId | null;
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
  /** What the phone chose in a poll. */
  "votes": Array<string>;
};

export type PhoneChange = {
  /** Whether the phone blocks the channel. */
  "blocks"?: boolean;
  /** Delay before the phone confirms a delivery. */
  "delay_ms"?: number;
  /** The timer of the phone's chat with the channel. */
  "disappearing_seconds"?: DisappearingSeconds;
  /** Whether the network names the phone by a LID, which the channel maps to its number: it sees no difference. */
  "lid_only"?: boolean;
  /** A phone with a name is a contact of the channel; `""` removes the name. */
  "name"?: string;
  /** Whether the phone hides its number. The channel then knows it by another `contact_id`, of 0 and 15 digits, and a login link that it answers fails with `number_hidden`. Once it is false again, or the channel has written to the number, both ids are one contact and the number cannot be hidden again. */
  "number_hidden"?: boolean;
  /** Whether the number has an account. */
  "on_network"?: boolean;
  /** Whether messages reach the phone. What is sent to it while it is offline arrives when it comes back. */
  "online"?: boolean;
  "reads"?: Reads;
};

export type PhoneChatAnswer = {
  "data": Array<PhoneBubble>;
  "message": Sentence;
  "meta": SearchMeta;
  "success": Success;
};

export type PhoneChatsAnswer = {
  "data": Array<{
    "channel": ChannelCode;
    "contact_id": ContactId;
    "last": PhoneBubble;
    "name": string;
    /** The channel's own number in digits. */
    "number": string;
    /** Of the last message. */
    "timestamp": Timestamp;
    /** Whether the phone shows the channel as typing. */
    "typing": boolean;
    "unread": number;
  }>;
  "message": Sentence;
  "success": Success;
};

export type PhoneGroupRequest = {
  /** If admins must approve new members, a phone that joins waits for that. */
  "action": "leave" | "join" | "rename" | "disappearing";
  "group_id": GroupId;
  /** The new name (`rename`). */
  "name"?: string;
  /** The new timer (`disappearing`). */
  "seconds"?: DisappearingSeconds;
};

/** The file that a message carries. */
export type PhoneMedia = {
  "filename": string;
  /** In pixels; 0 if it is not known. */
  "height": number;
  "mimetype": string;
  /** How long it lasts; 0 if it is not known or does not last. */
  "seconds": number;
  /** In hexadecimal. */
  "sha256": string;
  "size": number;
  /** In pixels; 0 if it is not known. */
  "width": number;
};

export type PhoneMessage = {
  /** The text, caption or title, or `""`. */
  "body": string;
  /** Digit or letter codes found in the text. */
  "codes": Array<string>;
  /** How often the network received it. More than 1 means that it was sent again. */
  "copies": number;
  /** The position after this message. */
  "cursor": Cursor;
  /** After how many seconds it disappears; 0 if it stays. The sandbox keeps it, so that tests can read it. */
  "disappearing_seconds": number;
  "edited_at": EditedAt;
  "group_id": GroupId | null;
  /** Links found in the text. */
  "links": Array<string>;
  "media": PhoneMedia | null;
  "message_id": MessageId;
  "reply_to": BareId | null;
  "status": MessageStatus;
  "timestamp": Timestamp;
  "type": MessageType;
};

export type PhoneMessagesAnswer = {
  "data": Array<PhoneMessage>;
  "message": Sentence;
  "meta": {
    "cursor": Cursor;
  };
  "success": Success;
};

/** A phone number in digits, with country code. */
export type PhoneNumber = string;

export type PhoneNumberAnswer = {
  "data": {
    "contact_id": ContactId | null;
    /** Whether the number has an account. */
    "is_exists": boolean;
  };
  "message": Sentence;
  "success": Success;
};

/** Either `link` or the `id` of an open login link of this channel is required. */
export type PhoneOpenRequest = {
  /** The id of a login link. */
  "id"?: string;
  /** The link as shown to the user. */
  "link"?: string;
};

export type PhoneReadAnswer = {
  "data": {
    /** How many messages were new to the phone. */
    "read": number;
  };
  "message": Sentence;
  "success": Success;
};

export type PhoneReadRequest = {
  "message_id"?: MessageRef;
};

export type PhoneRequest = {
  "name"?: string;
  "number"?: AnyPhoneNumber;
};

export type PhoneSendAnswer = {
  "data": {
    "id": BareId;
    /** As the channel knows it. Use it with `seen` or `reaction`. */
    "message_id": MessageId;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  "success": Success;
};

/** What the phone does. Which fields count depends on `type`. */
export type PhoneSendRequest = {
  /** The address of the place (`location`). */
  "address"?: string;
  "audioUrl"?: AudioAddress;
  "caption"?: Caption;
  "contacts"?: ContactsToSend;
  "file"?: FileOfPhone;
  /** Whether the owner of the channel's account wrote it to the phone or the group, on a phone of their own. The channel then publishes `message.sent_on_phone`. Not for `reaction`, `vote`, `edit` and `delete`. */
  "from_owner"?: boolean;
  /** The group to send to; by default the channel. */
  "group_id"?: GroupId;
  "latitude"?: Latitude;
  "longitude"?: Longitude;
  /** The contacts that the text names, each as `@` and the number (`text`). */
  "mentions"?: Array<AnyContactId>;
  /** The text (`text`), or the new text or caption (`edit`). */
  "message"?: string;
  "message_id"?: MessageRef;
  /** The chosen options (`vote`). */
  "options"?: Array<string>;
  /** One emoji, or `""` to remove it (`reaction`). */
  "reaction"?: string;
  "reply_to"?: ReplyTo;
  /** The name of the place (`location`). */
  "title"?: string;
  "type": "text" | "image" | "voice" | "video" | "file" | "sticker" | "location" | "contact" | "reaction" | "vote" | "edit" | "delete";
  /** The channel cannot read this message, and publishes `message.unreadable` with this reason. After `undecryptable` the phone sends it again at once, under the same id; a `view_once` message never comes. Not together with `from_owner`, and not for `reaction`, `vote`, `edit` and `delete`. */
  "unreadable"?: "undecryptable" | "view_once";
  "videoUrl"?: Address;
};

export type PhonesAnswer = {
  "data": Array<Phone>;
  "message": Sentence;
  "success": Success;
};

export type PictureAnswer = {
  "data": {
    "picture_url": string | null;
    /** The same as `picture_url`. */
    "profile_picture_url": string | null;
  };
  "message": Sentence;
  "success": Success;
};

export type Place = {
  "address": string;
  "latitude": string;
  "longitude": string;
  "title": string;
};

export type PollRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  /** Whether more than one option may be chosen. The default is false. */
  "is_multiple_answer"?: boolean;
  /** The options to choose from, all different. */
  "options": Array<string>;
  "reply_to"?: ReplyTo;
  /** The question. */
  "title": string;
};

export type PollState = {
  "multiple": boolean;
  "options": Array<{
    "name": string;
    "votes": number;
  }>;
  "title": string;
};

export type PollVoteEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventVote;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "poll.vote";
};

/** File addresses, one message each. */
export type PoolAddresses = Array<Address>;

export type PoolAnswer = {
  "message": "OK" | "Failed to send pool message";
  /** The JSON text of an array with one object for each message: `type`, `status`, `message_id`, `id` and `error`. A message that was not sent is `FAILED` with null ids and the error `not_sent`. */
  "pools": string;
  /** False when any message failed or no channel was WORKING. */
  "success": boolean;
};

export type PoolFile = {
  "data": PoolMedia;
  "type": "file";
};

export type PoolImage = {
  "data": PoolMedia;
  "type": "image";
};

/** One message, where `data` is an object with the fields of that type's own endpoint without `contact_id`; or up to ten, where `data` is a list of texts or of file addresses. */
export type PoolItem = PoolText | PoolImage | PoolVideo | PoolFile | PoolVoice;

export type PoolMedia = {
  "caption"?: Caption;
  "file"?: FileToSend;
  "reply_to"?: ReplyTo;
  "url"?: Address;
} | PoolAddresses;

export type PoolRequest = {
  "contact_id": AnyContactId;
  /** What to send, in order; at most 100 messages in all. */
  "pools": Array<PoolItem>;
};

export type PoolText = {
  "data": {
    "linkPreview"?: BooleanLike;
    "linkPreviewHighQuality"?: BooleanLike;
    "message": string;
    "reply_to"?: ReplyTo;
  } | Array<string>;
  "type": "text";
};

export type PoolVideo = {
  "data": {
    "caption"?: Caption;
    "file"?: FileToSend;
    "reply_to"?: ReplyTo;
    "videoUrl"?: Address;
  } | PoolAddresses;
  "type": "video";
};

export type PoolVoice = {
  "data": {
    "audioUrl"?: AudioAddress;
    "file"?: FileToSend;
    "reply_to"?: ReplyTo;
  } | PoolAddresses;
  "type": "voice";
};

/** The message that a message replies to. */
export type Quoted = {
  /** Its text, caption or title; `""` if it has none or is not stored. */
  "body": string;
  "id": BareId;
};

export type ReactionAnswer = {
  "data": {
    "error"?: SendError;
    /** The reaction's own id. */
    "id": BareId;
    /** The emoji. */
    "message": string;
    "status": MessageStatus;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** False when the network refused it. */
  "success": boolean;
};

export type ReactionRequest = {
  "message_id": MessageRef;
  /** One emoji, or `""` to remove the reaction. */
  "reaction": string;
};

export type ReadChatRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  /** Whether to mark the chat as read or unread. */
  "read": boolean;
};

/** When the phone reads what arrives. */
export type Reads = "at_once" | "when_open" | "never";

/** The bare id of the message to reply to, in the same channel. */
export type ReplyTo = string;

export type SearchMeta = {
  "next_cursor": NextCursor;
};

export type SendAnswer = {
  "data": {
    "error"?: SendError;
    "id": BareId;
    /** What was sent: the text, the title or coordinates of the place, the address of the audio, or the title of the poll. */
    "message": string;
    "message_id": MessageId;
    "status": MessageStatus;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** False when the network refused the message. */
  "success": boolean;
};

/** Why a message was not sent. */
export type SendError = {
  /** | Value | Meaning | |---|---| | `not_on_network` | The number has no account, or cannot exist: it begins with 0, or has fewer than 7 or more than 15 digits. Begin with the country code. | | `blocked` | The contact has blocked the account. | | `restricted` | The network currently prevents this account from writing to new contacts. | | `refused` | The network refused the message, for the reason in `message`. | | `expired` | It waited longer than the channel allows. | | `not_sent` | An earlier message of its pool failed, no channel could send it, or its channel went live before it was sent in the sandbox. | | `gave_up` | Too many attempts failed. | | `account_changed` | The channel was paired with another account before it was sent. | | `unsupported` | The network does not support this kind of message. | | `opted_out` | The contact asked for no more messages. | | `quota` | It expired while the channel had reached its quota for the day, or at night. | | `outside_window` | The contact has not written for 24 hours, so the official network accepts templates only. | | `template` | The template is not approved, or its parameters do not fit. | | `held_back` | Meta currently holds back further marketing messages to this contact. | | `payment` | The WhatsApp Business Account cannot pay. | | `unknown_outcome` | It may have been sent: Meta's response was lost and no status came. | */
  "code": "not_on_network" | "blocked" | "restricted" | "refused" | "expired" | "not_sent" | "gave_up" | "account_changed" | "unsupported" | "opted_out" | "quota" | "outside_window" | "template" | "held_back" | "payment" | "unknown_outcome";
  "message": Sentence;
  /** Until when the reason applies, if that is known. */
  "until"?: Timestamp;
};

export type Sentence = string;

export type StarRequest = {
  "message_id": MessageRef;
  /** Whether to star the message or remove the star. */
  "starred": boolean;
};

export type StickerRequest = {
  "contact_id"?: ToContact;
  "file": FileToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
};

export type Success = true;

export type Template = {
  /** Its text, with gaps such as `{{1}}` or `{{name}}`. Empty if the network does not reveal it. */
  "body": string;
  "category": string;
  "footer"?: string;
  "header"?: string;
  "language": string;
  "name": string;
  /** Why it was rejected. */
  "reason"?: string;
  "status": string;
};

export type TemplateAnswer = {
  "data": Template;
  "message": Sentence;
  "success": Success;
};

export type TemplateCreateRequest = {
  /** With gaps such as `{{1}}` or `{{name}}`. */
  "body": string;
  /** The default is UTILITY. */
  "category"?: "UTILITY" | "MARKETING";
  /** What the gaps may contain, in order, for the review. */
  "examples"?: Array<string>;
  "footer"?: string;
  "header"?: string;
  "language": string;
  "name": string;
  /** Only on the sandbox, to try what happens in another status. */
  "status"?: "PENDING" | "APPROVED" | "REJECTED" | "PAUSED" | "DISABLED";
};

export type TemplateRequest = {
  "buttons"?: Array<{
    "index": number;
    /** What the button sends when it is tapped. */
    "payload"?: string;
    /** The end of the button's address. */
    "text"?: string;
  }>;
  "contact_id": AnyContactId;
  /** What the title of the template shows, a text or a file, as the template says. */
  "header"?: {
    "file"?: FileToSend;
    "text"?: string;
  };
  "language": string;
  "name": string;
  /** What fills the gaps: texts in order, or by name. No line breaks or tabs. */
  "parameters"?: Array<string> | Record<string, string>;
  /** The id of the message that this one replies to. */
  "reply_to"?: string;
};

export type TemplatesAnswer = {
  "data": Array<Template>;
  "message": Sentence;
  "success": Success;
};

export type TextRequest = {
  "contact_id"?: ToContact;
  "group_id"?: ToGroup;
  /** Show a preview of the first link. The default is true. */
  "linkPreview"?: BooleanLike;
  /** Show the preview with a large picture. The default is true. */
  "linkPreviewHighQuality"?: BooleanLike;
  /** The contacts that the text names, each as `@` and the number. */
  "mentions"?: Array<AnyContactId>;
  /** The text. */
  "message": string;
  "reply_to"?: ReplyTo;
};

export type Timestamp = string;

/** The contact. Send either this or `group_id`, not both. */
export type ToContact = AnyContactId;

/** The group, instead of `contact_id`. */
export type ToGroup = GroupId;

export type UploadAnswer = {
  "data": {
    /** When it is removed if no message uses it. */
    "expires_at": Timestamp;
    /** `""` if it has no name. */
    "filename": string;
    /** For `file.url`. */
    "id": string;
    /** By its content. */
    "mimetype": string;
    /** In hex. */
    "sha256": string;
    /** In bytes. */
    "size": number;
  };
  "message": Sentence;
  "success": Success;
};

export type ValidationError = {
  "code": ErrorCode;
  /** What is wrong, by field. A field inside another is a path with dots, for example `file.url` or `pools.0.data.message`. */
  "errors": Record<string, Array<Sentence>>;
  /** The first sentence of `errors`, and how many more there are. */
  "message": string;
};

export type VideoAnswer = {
  "data": {
    "error"?: SendError;
    "id": BareId;
    "message": {
      "caption": string;
      "details": MediaDetails;
      /** The address that it was fetched from. */
      "video": string;
    };
    "message_id": MessageId;
    "status": MessageStatus;
    "timestamp": Timestamp;
  };
  "message": Sentence;
  /** False when the network refused the message. */
  "success": boolean;
};

/** `file` or `videoUrl` is required. */
export type VideoRequest = {
  "caption"?: Caption;
  "contact_id"?: ToContact;
  "file"?: FileToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
  "videoUrl"?: Address;
};

/** `audioUrl` or `file` is required. */
export type VoiceRequest = {
  "audioUrl"?: AudioAddress;
  "contact_id"?: ToContact;
  "file"?: FileToSend;
  "group_id"?: ToGroup;
  "reply_to"?: ReplyTo;
};

/** Why a message has not been sent yet. It is not in events. */
export type Waiting = {
  /** `quota`: the channel is careful, and has reached a limit or it is night. `restricted`: the network prevents the account from writing to new contacts. */
  "reason": "pace" | "quota" | "restricted" | "not_connected";
  /** Null if it is not known. */
  "until": Timestamp | null;
};

export type WebhookGapEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventGap;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "webhook.gap";
};

export type WebhookTestEvent = {
  "channel": ChannelCodeOrNone;
  "data": EventTest;
  "id": EventId;
  /** The position in the log. It only grows, and has gaps. 0 in a test. */
  "seq": number;
  "timestamp": Timestamp;
  "type": "webhook.test";
};

/** Until when the contact can get more than templates; null if it can get templates only. Missing where there is no such limit. */
export type WindowUntil = string | null;

/** Every operation: what it takes, and what it returns. */
export interface Operations {
  "GET /api/channel/check-phone-number": { input: { query: { "phone": string } }; answer: PhoneNumberAnswer };
  "GET /api/channel/health": { input: {  }; answer: HealthAnswer };
  "GET /api/chat": { input: { query?: { "limit"?: number; "offset"?: number; "cursor"?: string } }; answer: ChatsAnswer };
  "POST /api/chat/archive": { input: { body: ContactRequest }; answer: HistoryAnswer };
  "GET /api/chat/detail": { input: { query?: { "contact_id"?: AnyContactId; "group_id"?: GroupId; "limit"?: number; "offset"?: number } }; answer: HistoryAnswer };
  "PUT /api/chat/disappearing": { input: { body: DisappearingRequest }; answer: OperationAnswer };
  "PUT /api/chat/read": { input: { body: ReadChatRequest }; answer: OperationAnswer };
  "POST /api/chat/un-archive": { input: { body: ContactRequest }; answer: OperationAnswer };
  "GET /api/contact": { input: { query?: { "search"?: string; "limit"?: number; "offset"?: number } }; answer: ContactsAnswer };
  "PUT /api/contact/block": { input: { body: BlockRequest }; answer: BlockAnswer };
  "GET /api/contact/info": { input: { query: { "contact_id": AnyContactId } }; answer: ContactInfoAnswer };
  "GET /api/contact/opt-outs": { input: { query?: { "limit"?: number; "cursor"?: string } }; answer: OptOutsAnswer };
  "POST /api/contact/opt-outs": { input: { body: OptOutRequest }; answer: OptOutChangeAnswer };
  "DELETE /api/contact/opt-outs": { input: { query: { "contact_id": AnyContactId } }; answer: OptOutChangeAnswer };
  "GET /api/contact/opt-outs/export": { input: { query?: { "format"?: "csv" | "jsonl" } }; answer: string };
  "GET /api/contact/picture": { input: { query: { "contact_id": AnyContactId } }; answer: PictureAnswer };
  "GET /api/events": { input: { query?: { "channel"?: ChannelCode; "types"?: string; "after"?: EventId } }; answer: string };
  "GET /api/events/recent": { input: { query?: { "channel"?: ChannelCode; "types"?: string; "limit"?: number; "cursor"?: EventId } }; answer: EventsAnswer };
  "GET /api/groups": { input: { query?: { "search"?: string; "limit"?: number; "offset"?: number } }; answer: GroupsAnswer };
  "POST /api/groups/add": { input: { body: MembersRequest }; answer: MembersAnswer };
  "POST /api/groups/create": { input: { body: GroupRequest }; answer: GroupAnswer };
  "PUT /api/groups/demote": { input: { body: MembersRequest }; answer: MembersAnswer };
  "PUT /api/groups/description": { input: { body: GroupDescriptionRequest }; answer: LeftAnswer };
  "GET /api/groups/invite": { input: { query: { "group_id": GroupId } }; answer: InviteAnswer };
  "POST /api/groups/join": { input: { body: JoinRequest }; answer: JoinedAnswer };
  "POST /api/groups/leave": { input: { body: LeaveRequest }; answer: LeftAnswer };
  "PUT /api/groups/name": { input: { body: GroupNameRequest }; answer: LeftAnswer };
  "GET /api/groups/participants": { input: { query: { "group_id": GroupId } }; answer: ParticipantsAnswer };
  "PUT /api/groups/picture": { input: { body: GroupPictureRequest }; answer: LeftAnswer };
  "PUT /api/groups/promote": { input: { body: MembersRequest }; answer: MembersAnswer };
  "POST /api/groups/remove": { input: { body: MembersRequest }; answer: MembersAnswer };
  "GET /api/groups/requests": { input: { query: { "group_id": GroupId } }; answer: JoinRequestsAnswer };
  "POST /api/groups/requests": { input: { body: AnswerRequestsRequest }; answer: MembersAnswer };
  "PUT /api/groups/settings": { input: { body: GroupSettingsRequest }; answer: LeftAnswer };
  "POST /api/media": { input: {  }; answer: UploadAnswer };
  "GET /api/media/{id}": { input: { path: { "id": string }; query?: { "expires"?: string; "signature"?: string } }; answer: string };
  "GET /api/messages": { input: { query?: { "contact"?: string; "status"?: MessageStatus; "type"?: MessageType; "direction"?: "in" | "out"; "after"?: string; "before"?: string; "text"?: string; "limit"?: number; "cursor"?: string } }; answer: FoundMessagesAnswer };
  "GET /api/messages/{message_id}": { input: { path: { "message_id": string } }; answer: OneMessageAnswer };
  "POST /api/otp/code/global": { input: { body: CodeRequest }; answer: GlobalCodeAnswer };
  "POST /api/otp/code/request": { input: { body: CodeRequest }; answer: CodeAnswer };
  "POST /api/otp/code/validate": { input: { body: CodeTry }; answer: CodeTryAnswer };
  "POST /api/otp/link/global": { input: { body: LinkRequest }; answer: LinkAnswer };
  "POST /api/otp/link/request": { input: { body: LinkRequest }; answer: LinkAnswer };
  "GET /api/otp/link/{id}": { input: { path: { "id": string } }; answer: LinkStateAnswer };
  "DELETE /api/sandbox": { input: {  }; answer: DoneAnswer };
  "POST /api/sandbox/clock": { input: { body: ClockRequest }; answer: ClockAnswer };
  "GET /api/sandbox/cursor": { input: {  }; answer: CursorAnswer };
  "GET /api/sandbox/faults": { input: {  }; answer: FaultsAnswer };
  "POST /api/sandbox/faults": { input: { body: FaultRequest }; answer: DoneAnswer };
  "DELETE /api/sandbox/faults": { input: {  }; answer: DoneAnswer };
  "GET /api/sandbox/listeners": { input: { query: { "type": EventType } }; answer: ListenersAnswer };
  "GET /api/sandbox/phones": { input: {  }; answer: PhonesAnswer };
  "POST /api/sandbox/phones": { input: { body?: PhoneRequest }; answer: PhoneAnswer };
  "PATCH /api/sandbox/phones/{number}": { input: { path: { "number": AnyPhoneNumber }; body: PhoneChange }; answer: PhoneAnswer };
  "POST /api/sandbox/phones/{number}/call": { input: { path: { "number": AnyPhoneNumber }; body: CallRequest }; answer: CallAnswer };
  "GET /api/sandbox/phones/{number}/chat": { input: { path: { "number": AnyPhoneNumber }; query?: { "group_id"?: GroupId; "cursor"?: string; "limit"?: number } }; answer: PhoneChatAnswer };
  "GET /api/sandbox/phones/{number}/chats": { input: { path: { "number": AnyPhoneNumber } }; answer: PhoneChatsAnswer };
  "POST /api/sandbox/phones/{number}/group": { input: { path: { "number": AnyPhoneNumber }; body: PhoneGroupRequest }; answer: DoneAnswer };
  "GET /api/sandbox/phones/{number}/media/{message_id}": { input: { path: { "number": AnyPhoneNumber; "message_id": string } }; answer: string };
  "GET /api/sandbox/phones/{number}/messages": { input: { path: { "number": AnyPhoneNumber }; query?: { "after"?: string; "type"?: MessageType; "contains"?: string; "limit"?: number; "wait"?: number } }; answer: PhoneMessagesAnswer };
  "POST /api/sandbox/phones/{number}/open": { input: { path: { "number": AnyPhoneNumber }; body: PhoneOpenRequest }; answer: PhoneSendAnswer };
  "POST /api/sandbox/phones/{number}/read": { input: { path: { "number": AnyPhoneNumber }; body?: PhoneReadRequest }; answer: PhoneReadAnswer };
  "POST /api/sandbox/phones/{number}/send": { input: { path: { "number": AnyPhoneNumber }; body: PhoneSendRequest }; answer: PhoneSendAnswer };
  "POST /api/send-message/contact": { input: { body: ContactsRequest }; answer: SendAnswer };
  "DELETE /api/send-message/delete": { input: { query?: { "message_id"?: MessageRef }; body?: MessageRequest }; answer: OperationAnswer };
  "PUT /api/send-message/edit": { input: { body: EditRequest }; answer: OperationAnswer };
  "POST /api/send-message/file": { input: { body: FileRequest }; answer: FileAnswer };
  "POST /api/send-message/forward": { input: { body: ForwardRequest }; answer: SendAnswer };
  "POST /api/send-message/image": { input: { body: ImageRequest }; answer: ImageAnswer };
  "POST /api/send-message/location": { input: { body: LocationRequest }; answer: SendAnswer };
  "POST /api/send-message/poll": { input: { body: PollRequest }; answer: SendAnswer };
  "POST /api/send-message/pool": { input: { body: PoolRequest }; answer: PoolAnswer };
  "PUT /api/send-message/reaction": { input: { body: ReactionRequest }; answer: ReactionAnswer };
  "POST /api/send-message/seen": { input: { body: MessageRequest }; answer: OperationAnswer };
  "PUT /api/send-message/star": { input: { body: StarRequest }; answer: OperationAnswer };
  "POST /api/send-message/sticker": { input: { body: StickerRequest }; answer: SendAnswer };
  "POST /api/send-message/stop-typing": { input: { body: ContactRequest }; answer: string };
  "POST /api/send-message/template": { input: { body: TemplateRequest }; answer: SendAnswer };
  "POST /api/send-message/text": { input: { body: TextRequest }; answer: SendAnswer };
  "POST /api/send-message/typing": { input: { body: ContactRequest }; answer: string };
  "POST /api/send-message/video": { input: { body: VideoRequest }; answer: VideoAnswer };
  "POST /api/send-message/voice": { input: { body: VoiceRequest }; answer: SendAnswer };
  "GET /api/templates": { input: {  }; answer: TemplatesAnswer };
  "POST /api/templates": { input: { body: TemplateCreateRequest }; answer: TemplateAnswer };
  "DELETE /api/templates/{name}": { input: { path: { "name": string } }; answer: DoneAnswer };
}
