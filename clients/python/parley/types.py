"""Generated from the OpenAPI document by internal/tools/clienttypes. Do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Address = str
AnyContactId = str
AnyPhoneNumber = str
AudioAddress = str
BareId = str
BooleanLike = bool
Caption = str
ChannelCode = str
ChannelCodeOrNone = str
ChannelStatus = Literal["STOPPED", "STARTING", "SCAN_QR_CODE", "WORKING", "RECONNECTING", "LOGGED_OUT", "FAILED"]
ContactCards = List['ContactCardsItem']
ContactId = str
ContactsToSend = List['ContactsToSendItem']
Cursor = str
DisappearingSeconds = Literal[0, 86400, 604800, 7776000]
EditedAt = Optional['Timestamp']
ErrorCode = Literal["bad_request", "channel_not_ready", "unsupported", "unauthenticated", "token_expired", "forbidden", "not_found", "method_not_allowed", "conflict", "too_large", "invalid", "rate_limited", "queue_full", "storage_limit", "storage_full", "internal", "unavailable"]
Event = Union['MessageReceivedEvent', 'MessageStatusEvent', 'MessageReactionEvent', 'MessageDeletedEvent', 'MessageEditedEvent', 'MessageMediaEvent', 'MessageSentOnPhoneEvent', 'PollVoteEvent', 'ChannelStatusEvent', 'ChannelRestrictedEvent', 'ChannelNoticeEvent', 'ChannelPairingEvent', 'ContactOptedOutEvent', 'ContactOptedInEvent', 'CallReceivedEvent', 'CallEndedEvent', 'MessageUnreadableEvent', 'OTPApprovedEvent', 'OTPFailedEvent', 'OTPExpiredEvent', 'OTPPausedEvent', 'OTPGuessingEvent', 'GroupChangedEvent', 'WebhookGapEvent', 'WebhookTestEvent']
EventId = str
EventType = Literal["message.received", "message.status", "message.reaction", "message.deleted", "poll.vote", "channel.status", "channel.pairing", "otp.approved", "otp.failed", "otp.expired", "otp.paused", "otp.guessing", "message.media", "webhook.gap", "group.changed", "message.edited", "channel.restricted", "message.sent_on_phone", "contact.opted_out", "contact.opted_in", "call.received", "call.ended", "message.unreadable", "channel.notice"]
FileAddress = str
FromMe = Literal["true", "false"]
GroupId = str
KnownName = str
Latitude = str
LinkId = str
LinkText = str
Longitude = str
MediaId = str
MediaStatus = Literal["pending", "ready", "failed"]
MemberId = str
Members = List[Union['MemberId', 'MembersItem2']]
MessageId = str
MessageRef = str
MessageStatus = Literal["PENDING", "SENT", "DELIVERED", "READ", "PLAYED", "FAILED", "DELETED", "RECEIVED"]
MessageType = Literal["text", "image", "video", "file", "voice", "sticker", "location", "poll", "contact", "template"]
NetworkName = str
NextCursor = Optional[str]
PairingStepName = Literal["starting", "qr", "code", "wrong_code", "passkey", "confirm", "paired", "timeout", "failed"]
PhoneNumber = str
PoolAddresses = List['Address']
PoolItem = Union['PoolText', 'PoolImage', 'PoolVideo', 'PoolFile', 'PoolVoice']
PoolMedia = Union['PoolMedia1', 'PoolAddresses']
Reads = Literal["at_once", "when_open", "never"]
ReplyTo = str
Sentence = str
Success = Literal[True]
Timestamp = str
ToContact = AnyContactId
ToGroup = GroupId
WindowUntil = Optional[str]


class AnswerRequestsRequest(TypedDict):
    approve: bool
    group_id: GroupId
    participants: Members


class BlockAnswerData(TypedDict):
    blocked: bool
    contact_id: ContactId


class BlockAnswer(TypedDict):
    data: BlockAnswerData
    message: Sentence
    success: Success


class BlockRequest(TypedDict):
    blocked: bool
    contact_id: AnyContactId


class CallAnswerData(TypedDict):
    id: str


class CallAnswer(TypedDict):
    data: CallAnswerData
    message: Sentence
    success: Success


class CallEndedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventCallEnd
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["call.ended"]


class CallReceivedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventCall
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["call.received"]


class CallRequest(TypedDict):
    action: Literal["start", "end"]
    id: NotRequired[str]
    video: NotRequired[bool]


class ChannelNoticeEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventNotice
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["channel.notice"]


class ChannelPairingEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventPairing
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["channel.pairing"]


class ChannelRestrictedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventRestricted
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["channel.restricted"]


class ChannelStatusEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventChannel
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["channel.status"]


class Chat(TypedDict):
    archived: bool
    contact_id: NotRequired[ContactId]
    group_id: NotRequired[GroupId]
    last: NotRequired[FoundMessage]
    messages: int
    name: str
    timestamp: Timestamp
    window_until: NotRequired[WindowUntil]


class ChatMessageChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class ChatMessage(TypedDict):
    body: str
    choice: NotRequired[ChatMessageChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    waiting: NotRequired[Waiting]


class ChatsAnswer(TypedDict):
    data: List[Chat]
    message: Sentence
    meta: ChatsMeta
    success: Success


class ChatsMeta(TypedDict):
    current_page: NotRequired[int]
    has_next_page: bool
    has_prev_page: bool
    next_cursor: Optional[str]
    per_page: int
    total: int
    total_pages: int


class ClockAnswerData(TypedDict):
    timestamp: Timestamp


class ClockAnswer(TypedDict):
    data: ClockAnswerData
    message: Sentence
    success: Success


class ClockRequest(TypedDict):
    advance: int


class CodeAnswerData(TypedDict):
    channel: NotRequired[ChannelCode]
    contact_id: ContactId
    expired_at: Timestamp
    id: str
    status: Literal["PENDING"]
    timestamp: Timestamp


class CodeAnswer(TypedDict):
    data: CodeAnswerData
    message: Sentence
    success: Literal[True]


class CodeRequest(TypedDict):
    allCapital: NotRequired[bool]
    channels: NotRequired[List[ChannelCode]]
    contact_id: AnyContactId
    expires: NotRequired[int]
    length: NotRequired[int]
    name: NotRequired[str]
    useLetter: NotRequired[bool]
    useNumber: NotRequired[bool]


class CodeTry(TypedDict):
    code: str
    contact_id: AnyContactId


class CodeTryAnswerData(TypedDict):
    attempts_left: int
    channels_tried: NotRequired[List[ChannelCode]]
    id: Optional[str]
    status: Literal["APPROVED", "INVALID", "EXPIRED", "LOCKED"]
    timestamp: Timestamp


class CodeTryAnswer(TypedDict):
    data: CodeTryAnswerData
    message: Sentence
    success: bool


class Contact(TypedDict):
    contact_id: ContactId
    id: ContactId
    is_blocked: bool
    is_business: bool
    last_seen_at: Optional[Timestamp]
    name: str
    number: Optional[PhoneNumber]
    username: Optional[str]


class ContactCardsItem(TypedDict):
    name: str
    vcard: str


class ContactInfo(TypedDict):
    about: str
    contact_id: ContactId
    disappearing_seconds: int
    id: ContactId
    is_blocked: bool
    is_business: bool
    last_seen_at: Optional[Timestamp]
    name: str
    number: Optional[PhoneNumber]
    on_network: bool
    picture_url: Optional[str]
    profile_picture_url: Optional[str]
    username: Optional[str]
    window_until: NotRequired[WindowUntil]


class ContactInfoAnswer(TypedDict):
    data: ContactInfo
    message: Sentence
    success: Success


class ContactOptedInEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOptOut
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["contact.opted_in"]


class ContactOptedOutEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOptOut
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["contact.opted_out"]


class ContactRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]


class ContactsAnswer(TypedDict):
    data: List[Contact]
    message: Sentence
    meta: Meta
    success: Success


class ContactsRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    contacts: ContactsToSend
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]


class ContactsToSendItem(TypedDict):
    name: str
    numbers: List[str]


class CursorAnswerData(TypedDict):
    cursor: Cursor


class CursorAnswer(TypedDict):
    data: CursorAnswerData
    message: Sentence
    success: Success


class DisappearingRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    seconds: DisappearingSeconds


class DoneAnswer(TypedDict):
    data: Dict[str, Any]
    message: Sentence
    success: Success


class EditRequest(TypedDict):
    message: str
    message_id: MessageRef


class Error(TypedDict):
    code: ErrorCode
    message: str


class EventCall(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: str
    video: bool


class EventCallEnd(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: str
    reason: Literal["rejected", "accepted", "ended"]


class EventChannel(TypedDict):
    name: str
    number: str
    reason: str
    since: Timestamp
    status: ChannelStatus
    was: ChannelStatus

EventGap = TypedDict("EventGap", {
    "channel": "ChannelCodeOrNone",
    "from": "int",
    "lost": "int",
    "to": "int",
    "webhook": "str",
})


class EventGroup(TypedDict):
    added: List[ContactId]
    contact_id: NotRequired[ContactId]
    contact_name: NotRequired[KnownName]
    from_me: FromMe
    group_id: GroupId
    group_name: KnownName
    name: NotRequired[str]
    outgoing: bool
    removed: List[ContactId]


class EventInboundChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class EventInbound(TypedDict):
    body: str
    choice: NotRequired[EventInboundChoice]
    contact_id: ContactId
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    waiting: NotRequired[Waiting]


class EventMessageChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class EventMessage(TypedDict):
    body: str
    choice: NotRequired[EventMessageChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    waiting: NotRequired[Waiting]


class EventNotice(TypedDict):
    contact_id: NotRequired[ContactId]
    contact_name: NotRequired[KnownName]
    kind: Literal["quality", "limit", "restriction", "template", "number_changed"]
    language: NotRequired[str]
    status: str
    template: NotRequired[str]
    text: str


class EventOTP(TypedDict):
    channels_tried: NotRequired[List[ChannelCode]]
    contact_id: ContactId
    contact_name: KnownName
    id: str


class EventOTPFailure(TypedDict):
    channels_tried: NotRequired[List[ChannelCode]]
    contact_id: ContactId
    contact_name: KnownName
    id: str
    reason: str


class EventOTPGuessing(TypedDict):
    tries: int


class EventOTPPaused(TypedDict):
    approved: int
    codes: int
    until: Timestamp


class EventOptOut(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    source: Literal["contact", "api"]


class EventPairingPasskey(TypedDict):
    expires_at: Timestamp
    request: Dict[str, Any]


class EventPairing(TypedDict):
    code: NotRequired[str]
    expires_at: NotRequired[Timestamp]
    n: NotRequired[int]
    of: NotRequired[int]
    passkey: NotRequired[EventPairingPasskey]
    reason: NotRequired[str]
    step: PairingStepName


class EventReactionChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class EventReactionReaction(TypedDict):
    contact_id: NotRequired[ContactId]
    contact_name: NotRequired[KnownName]
    emoji: str
    from_me: FromMe
    outgoing: bool


class EventReaction(TypedDict):
    body: str
    choice: NotRequired[EventReactionChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reaction: EventReactionReaction
    reactions: List[str]
    reply_to: NotRequired[BareId]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    waiting: NotRequired[Waiting]


class EventRestricted(TypedDict):
    restricted: bool
    until: Optional[str]


class EventTest(TypedDict):
    message: Sentence
    webhook_id: str


class EventUnreadable(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    message_id: MessageId
    reason: Literal["undecryptable", "view_once"]


class EventVoteChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class EventVoteVote(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    options: List[str]


class EventVote(TypedDict):
    body: str
    choice: NotRequired[EventVoteChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    vote: EventVoteVote
    waiting: NotRequired[Waiting]


class EventsAnswer(TypedDict):
    data: List[Event]
    message: Sentence
    meta: SearchMeta
    success: Success


class FaultRequest(TypedDict):
    fault: Literal["refuse", "late", "twice", "drop_socket", "log_out", "reachout_limit", "unknown", "window_closed", "template_paused", "held_back", "passkey"]
    reason: NotRequired[str]
    seconds: NotRequired[int]
    times: NotRequired[int]
    to: NotRequired[AnyPhoneNumber]
    type: NotRequired[Literal["text", "image", "video", "file", "voice", "sticker", "location", "poll", "contact", "template", "reaction", "edit", "seen", "delete", "star", "archive", "read", "disappearing"]]


class FaultsAnswerDataItem(TypedDict):
    fault: Literal["refuse", "late", "twice", "drop_socket", "log_out", "reachout_limit", "unknown", "window_closed", "template_paused", "held_back", "passkey"]
    reason: Optional[str]
    seconds: Optional[int]
    times: int
    to: Optional[str]
    type: Optional[str]


class FaultsAnswer(TypedDict):
    data: List[FaultsAnswerDataItem]
    message: Sentence
    success: Success


class FileAnswerDataMessage(TypedDict):
    caption: str
    details: MediaDetails
    file: str


class FileAnswerData(TypedDict):
    error: NotRequired[SendError]
    id: BareId
    message: FileAnswerDataMessage
    message_id: MessageId
    status: MessageStatus
    timestamp: Timestamp


class FileAnswer(TypedDict):
    data: FileAnswerData
    message: Sentence
    success: bool


class FileOfPhone(TypedDict):
    data: NotRequired[str]
    filename: NotRequired[str]
    mimeType: NotRequired[str]
    url: NotRequired[Address]


class FileRequest(TypedDict):
    caption: NotRequired[Caption]
    contact_id: NotRequired[ToContact]
    file: FileToSend
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]


class FileToSend(TypedDict):
    filename: NotRequired[str]
    mimeType: NotRequired[str]
    url: FileAddress


class ForwardRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    message_id: MessageRef


class FoundMessageChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class FoundMessage(TypedDict):
    body: str
    channel: ChannelCode
    choice: NotRequired[FoundMessageChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    otp: NotRequired[bool]
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    request_id: NotRequired[str]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    updated_at: Timestamp
    waiting: NotRequired[Waiting]


class FoundMessagesAnswer(TypedDict):
    data: List[FoundMessage]
    message: Sentence
    meta: SearchMeta
    success: Success


class GlobalCodeAnswerData(TypedDict):
    channel: ChannelCode
    contact_id: ContactId
    expired_at: Timestamp
    id: str
    status: Literal["PENDING"]
    timestamp: Timestamp


class GlobalCodeAnswer(TypedDict):
    data: GlobalCodeAnswerData
    message: Sentence
    success: Literal[True]


class GroupActions(TypedDict):
    can_add_member: bool
    join_approval: bool


class Group(TypedDict):
    actions: GroupActions
    created_at: Timestamp
    description: str
    disappearing_seconds: int
    id: GroupId
    is_community: bool
    is_owner: bool
    name: str
    only_admins_send: bool
    owner: str
    participant_count: int
    restricted: bool


class GroupAnswer(TypedDict):
    data: Group
    message: Sentence
    success: Success


class GroupChangedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventGroup
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["group.changed"]


class GroupDescriptionRequest(TypedDict):
    description: str
    group_id: GroupId


class GroupNameRequest(TypedDict):
    group_id: GroupId
    name: str


class GroupPictureRequest(TypedDict):
    file: NotRequired[FileToSend]
    group_id: GroupId
    url: NotRequired[Address]


class GroupRequest(TypedDict):
    name: str
    participants: Members


class GroupSettingsRequest(TypedDict):
    group_id: GroupId
    join_approval: NotRequired[bool]
    only_admins_add: NotRequired[bool]
    only_admins_edit: NotRequired[bool]
    only_admins_send: NotRequired[bool]


class GroupsAnswer(TypedDict):
    data: List[Group]
    message: Sentence
    meta: Meta
    success: Success


class HealthAnswerDataPhone(TypedDict):
    name: str
    number: int


class HealthAnswerData(TypedDict):
    code: ChannelCode
    name: str
    network: NetworkName
    phone: HealthAnswerDataPhone
    reason: str
    restricted: NotRequired[bool]
    restricted_until: NotRequired[Timestamp]
    simulated: bool
    since: Timestamp
    start_at: str
    status: ChannelStatus
    timestamp: Timestamp
    up_time: str
    waiting: int


class HealthAnswer(TypedDict):
    data: HealthAnswerData
    message: Sentence
    success: Success


class HistoryAnswer(TypedDict):
    data: List[ChatMessage]
    message: Sentence
    meta: Meta
    success: bool


class ImageAnswerDataMessage(TypedDict):
    caption: str
    details: MediaDetails
    image: str


class ImageAnswerData(TypedDict):
    error: NotRequired[SendError]
    id: BareId
    message: ImageAnswerDataMessage
    message_id: MessageId
    status: MessageStatus
    timestamp: Timestamp


class ImageAnswer(TypedDict):
    data: ImageAnswerData
    message: Sentence
    success: bool


class ImageRequest(TypedDict):
    caption: NotRequired[Caption]
    contact_id: NotRequired[ToContact]
    file: NotRequired[FileToSend]
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]
    url: NotRequired[Address]


class InviteAnswerData(TypedDict):
    group_id: GroupId
    link: str


class InviteAnswer(TypedDict):
    data: InviteAnswerData
    message: Sentence
    success: Success


class JoinRequest(TypedDict):
    link: str


class JoinRequestsAnswerDataItem(TypedDict):
    at: Timestamp
    id: ContactId


class JoinRequestsAnswer(TypedDict):
    data: List[JoinRequestsAnswerDataItem]
    message: Sentence
    success: Success


class JoinedAnswerData(TypedDict):
    group_id: GroupId
    waits: bool


class JoinedAnswer(TypedDict):
    data: JoinedAnswerData
    message: Sentence
    success: Success


class LeaveRequest(TypedDict):
    group_id: GroupId


class LeftAnswerData(TypedDict):
    group_id: GroupId


class LeftAnswer(TypedDict):
    data: LeftAnswerData
    message: Sentence
    success: Success


class LinkAnswerData(TypedDict):
    app_uri: str
    code: str
    contact_id: ContactId
    expired_at: Timestamp
    id: LinkId
    link: str
    timestamp: Timestamp


class LinkAnswer(TypedDict):
    data: LinkAnswerData
    message: Sentence
    success: Success


class LinkRequestCallback(TypedDict):
    failed: Address
    success: Address


class LinkRequestMessage(TypedDict):
    expired: LinkText
    failed: LinkText
    prompt: LinkText
    success: LinkText


class LinkRequest(TypedDict):
    callback: NotRequired[LinkRequestCallback]
    contact_id: AnyContactId
    expires: float
    message: NotRequired[LinkRequestMessage]
    name: NotRequired[str]


class LinkStateAnswerData(TypedDict):
    channel: ChannelCode
    contact_id: ContactId
    ended_at: Optional[Timestamp]
    expired_at: Timestamp
    id: LinkId
    name: str
    status: Literal["PENDING", "APPROVED", "INVALID", "EXPIRED", "LOCKED"]
    timestamp: Timestamp
    tries: int
    tries_by_others: int


class LinkStateAnswer(TypedDict):
    data: LinkStateAnswerData
    message: Sentence
    success: Success


class ListenersAnswerData(TypedDict):
    listeners: int
    webhooks: int


class ListenersAnswer(TypedDict):
    data: ListenersAnswerData
    message: Sentence
    success: Success


class LocationRequest(TypedDict):
    address: NotRequired[str]
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    latitude: Latitude
    longitude: Longitude
    reply_to: NotRequired[ReplyTo]
    title: NotRequired[str]


class MediaDetails(TypedDict):
    fileSha256: str
    height: str
    mediaKey: str
    mimetype: str
    timestamp: Timestamp
    width: str


class MembersItem2(TypedDict):
    id: MemberId


class MembersAnswerDataParticipantsItem(TypedDict):
    error: NotRequired[SendError]
    id: ContactId


class MembersAnswerData(TypedDict):
    group_id: GroupId
    participants: List[MembersAnswerDataParticipantsItem]


class MembersAnswer(TypedDict):
    data: MembersAnswerData
    message: Sentence
    success: bool


class MembersRequest(TypedDict):
    group_id: GroupId
    participants: Members


class MessageDeletedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventMessage
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.deleted"]


class MessageEditedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventMessage
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.edited"]


class MessageMedia(TypedDict):
    duration: NotRequired[int]
    filename: NotRequired[str]
    height: NotRequired[int]
    id: MediaId
    mimetype: str
    reason: NotRequired[str]
    sha256: NotRequired[str]
    size: int
    status: MediaStatus
    url: str
    width: NotRequired[int]


class MessageMediaEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventInbound
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.media"]


class MessageReactionEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventReaction
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.reaction"]


class MessageReceivedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventInbound
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.received"]


class MessageRequest(TypedDict):
    message_id: MessageRef


class MessageSentOnPhoneEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventMessage
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.sent_on_phone"]


class MessageStatusEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventMessage
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.status"]


class MessageUnreadableEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventUnreadable
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["message.unreadable"]


class Meta(TypedDict):
    current_page: int
    has_next_page: bool
    has_prev_page: bool
    per_page: int
    total: int
    total_pages: int


class OTPApprovedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOTP
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["otp.approved"]


class OTPExpiredEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOTP
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["otp.expired"]


class OTPFailedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOTPFailure
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["otp.failed"]


class OTPGuessingEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOTPGuessing
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["otp.guessing"]


class OTPPausedEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventOTPPaused
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["otp.paused"]


class OneMessageAnswerDataChoice(TypedDict):
    id: str
    token: NotRequired[str]
    type: Literal["button", "list", "form", "order", "invite"]


class OneMessageAnswerDataTimelineItem(TypedDict):
    at: Timestamp
    edited: NotRequired[bool]
    status: MessageStatus


class OneMessageAnswerData(TypedDict):
    body: str
    channel: ChannelCode
    choice: NotRequired[OneMessageAnswerDataChoice]
    contact_id: NotRequired[ContactId]
    contact_name: KnownName
    contacts: NotRequired[ContactCards]
    copies: NotRequired[int]
    edited_at: NotRequired[Timestamp]
    error: NotRequired[SendError]
    forwarded: NotRequired[bool]
    from_me: FromMe
    group_id: NotRequired[GroupId]
    group_name: NotRequired[KnownName]
    id: BareId
    is_media: bool
    location: NotRequired[Place]
    media: NotRequired[MessageMedia]
    mentions: NotRequired[List[ContactId]]
    message_id: MessageId
    otp: NotRequired[bool]
    outgoing: bool
    poll: NotRequired[PollState]
    possible_duplicate: NotRequired[bool]
    quoted: NotRequired[Quoted]
    reactions: List[str]
    reply_to: NotRequired[BareId]
    request_id: NotRequired[str]
    sent_as: NotRequired[Literal["template"]]
    source: NotRequired[Literal["phone"]]
    status: MessageStatus
    timeline: List[OneMessageAnswerDataTimelineItem]
    timestamp: Timestamp
    type: MessageType
    updated_at: Timestamp
    waiting: NotRequired[Waiting]


class OneMessageAnswer(TypedDict):
    data: OneMessageAnswerData
    message: Sentence
    success: Success


class OperationAnswerData(TypedDict):
    error: NotRequired[SendError]
    status: Literal["EDITED", "READ", "DELETED", "STARRED", "UNSTARRED", "UNARCHIVED", "UNREAD", "ON", "OFF", "PENDING", "FAILED"]
    timestamp: Timestamp
    type: Literal["edit", "seen", "delete", "star", "un-archive", "read", "disappearing"]


class OperationAnswer(TypedDict):
    data: OperationAnswerData
    message: Sentence
    success: bool


class OptOutChangeAnswerData(TypedDict):
    changed: int


class OptOutChangeAnswer(TypedDict):
    data: OptOutChangeAnswerData
    message: Sentence
    success: Success


class OptOutRequest(TypedDict):
    contact_id: NotRequired[AnyContactId]
    contact_ids: NotRequired[List[AnyContactId]]


class OptOutsAnswerDataItem(TypedDict):
    contact_id: ContactId
    contact_name: KnownName
    opted_out_at: Timestamp


class OptOutsAnswer(TypedDict):
    data: List[OptOutsAnswerDataItem]
    message: Sentence
    meta: SearchMeta
    success: Success


class ParticipantsAnswerDataItem(TypedDict):
    id: ContactId
    is_admin: bool
    is_owner: bool
    name: str


class ParticipantsAnswer(TypedDict):
    data: List[ParticipantsAnswerDataItem]
    message: Sentence
    success: Success


class Phone(TypedDict):
    blocks: bool
    contact_id: ContactId
    delay_ms: int
    disappearing_seconds: DisappearingSeconds
    lid_only: bool
    name: str
    number: PhoneNumber
    number_hidden: bool
    on_network: bool
    online: bool
    reads: Reads


class PhoneAnswer(TypedDict):
    data: Phone
    message: Sentence
    success: Success


class PhoneBubbleMedia1(TypedDict):
    bytes: int
    filename: str
    height: int
    mimetype: str
    seconds: int
    waveform: List[int]
    width: int


class PhoneBubblePreview1(TypedDict):
    description: str
    thumbnail: str
    title: str
    url: str


class PhoneBubble(TypedDict):
    body: str
    codes: List[str]
    contact_id: Optional[ContactId]
    contacts: ContactCards
    copies: int
    deleted: bool
    edited_at: EditedAt
    from_phone: bool
    group_id: Optional[GroupId]
    id: BareId
    links: List[str]
    location: Optional[Place]
    media: Optional[PhoneBubbleMedia1]
    message_id: MessageId
    poll: Optional[PollState]
    preview: Optional[PhoneBubblePreview1]
    reactions: List[str]
    reply_to: Optional[BareId]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType
    votes: List[str]


class PhoneChange(TypedDict):
    blocks: NotRequired[bool]
    delay_ms: NotRequired[int]
    disappearing_seconds: NotRequired[DisappearingSeconds]
    lid_only: NotRequired[bool]
    name: NotRequired[str]
    number_hidden: NotRequired[bool]
    on_network: NotRequired[bool]
    online: NotRequired[bool]
    reads: NotRequired[Reads]


class PhoneChatAnswer(TypedDict):
    data: List[PhoneBubble]
    message: Sentence
    meta: SearchMeta
    success: Success


class PhoneChatsAnswerDataItem(TypedDict):
    channel: ChannelCode
    contact_id: ContactId
    last: PhoneBubble
    name: str
    number: str
    timestamp: Timestamp
    typing: bool
    unread: int


class PhoneChatsAnswer(TypedDict):
    data: List[PhoneChatsAnswerDataItem]
    message: Sentence
    success: Success


class PhoneGroupRequest(TypedDict):
    action: Literal["leave", "join", "rename", "disappearing"]
    group_id: GroupId
    name: NotRequired[str]
    seconds: NotRequired[DisappearingSeconds]


class PhoneMedia(TypedDict):
    filename: str
    height: int
    mimetype: str
    seconds: int
    sha256: str
    size: int
    width: int


class PhoneMessage(TypedDict):
    body: str
    codes: List[str]
    copies: int
    cursor: Cursor
    disappearing_seconds: int
    edited_at: EditedAt
    group_id: Optional[GroupId]
    links: List[str]
    media: Optional[PhoneMedia]
    message_id: MessageId
    reply_to: Optional[BareId]
    status: MessageStatus
    timestamp: Timestamp
    type: MessageType


class PhoneMessagesAnswerMeta(TypedDict):
    cursor: Cursor


class PhoneMessagesAnswer(TypedDict):
    data: List[PhoneMessage]
    message: Sentence
    meta: PhoneMessagesAnswerMeta
    success: Success


class PhoneNumberAnswerData(TypedDict):
    contact_id: Optional[ContactId]
    is_exists: bool


class PhoneNumberAnswer(TypedDict):
    data: PhoneNumberAnswerData
    message: Sentence
    success: Success


class PhoneOpenRequest(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class PhoneReadAnswerData(TypedDict):
    read: int


class PhoneReadAnswer(TypedDict):
    data: PhoneReadAnswerData
    message: Sentence
    success: Success


class PhoneReadRequest(TypedDict):
    message_id: NotRequired[MessageRef]


class PhoneRequest(TypedDict):
    name: NotRequired[str]
    number: NotRequired[AnyPhoneNumber]


class PhoneSendAnswerData(TypedDict):
    id: BareId
    message_id: MessageId
    timestamp: Timestamp


class PhoneSendAnswer(TypedDict):
    data: PhoneSendAnswerData
    message: Sentence
    success: Success


class PhoneSendRequest(TypedDict):
    address: NotRequired[str]
    audioUrl: NotRequired[AudioAddress]
    caption: NotRequired[Caption]
    contacts: NotRequired[ContactsToSend]
    file: NotRequired[FileOfPhone]
    from_owner: NotRequired[bool]
    group_id: NotRequired[GroupId]
    latitude: NotRequired[Latitude]
    longitude: NotRequired[Longitude]
    mentions: NotRequired[List[AnyContactId]]
    message: NotRequired[str]
    message_id: NotRequired[MessageRef]
    options: NotRequired[List[str]]
    reaction: NotRequired[str]
    reply_to: NotRequired[ReplyTo]
    title: NotRequired[str]
    type: Literal["text", "image", "voice", "video", "file", "sticker", "location", "contact", "reaction", "vote", "edit", "delete"]
    unreadable: NotRequired[Literal["undecryptable", "view_once"]]
    videoUrl: NotRequired[Address]


class PhonesAnswer(TypedDict):
    data: List[Phone]
    message: Sentence
    success: Success


class PictureAnswerData(TypedDict):
    picture_url: Optional[str]
    profile_picture_url: Optional[str]


class PictureAnswer(TypedDict):
    data: PictureAnswerData
    message: Sentence
    success: Success


class Place(TypedDict):
    address: str
    latitude: str
    longitude: str
    title: str


class PollRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    is_multiple_answer: NotRequired[bool]
    options: List[str]
    reply_to: NotRequired[ReplyTo]
    title: str


class PollStateOptionsItem(TypedDict):
    name: str
    votes: int


class PollState(TypedDict):
    multiple: bool
    options: List[PollStateOptionsItem]
    title: str


class PollVoteEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventVote
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["poll.vote"]


class PoolAnswer(TypedDict):
    message: Literal["OK", "Failed to send pool message"]
    pools: str
    success: bool


class PoolFile(TypedDict):
    data: PoolMedia
    type: Literal["file"]


class PoolImage(TypedDict):
    data: PoolMedia
    type: Literal["image"]


class PoolMedia1(TypedDict):
    caption: NotRequired[Caption]
    file: NotRequired[FileToSend]
    reply_to: NotRequired[ReplyTo]
    url: NotRequired[Address]


class PoolRequest(TypedDict):
    contact_id: AnyContactId
    pools: List[PoolItem]


class PoolTextData1(TypedDict):
    linkPreview: NotRequired[BooleanLike]
    linkPreviewHighQuality: NotRequired[BooleanLike]
    message: str
    reply_to: NotRequired[ReplyTo]


class PoolText(TypedDict):
    data: Union[PoolTextData1, List[str]]
    type: Literal["text"]


class PoolVideoData1(TypedDict):
    caption: NotRequired[Caption]
    file: NotRequired[FileToSend]
    reply_to: NotRequired[ReplyTo]
    videoUrl: NotRequired[Address]


class PoolVideo(TypedDict):
    data: Union[PoolVideoData1, PoolAddresses]
    type: Literal["video"]


class PoolVoiceData1(TypedDict):
    audioUrl: NotRequired[AudioAddress]
    file: NotRequired[FileToSend]
    reply_to: NotRequired[ReplyTo]


class PoolVoice(TypedDict):
    data: Union[PoolVoiceData1, PoolAddresses]
    type: Literal["voice"]


class Quoted(TypedDict):
    body: str
    id: BareId


class ReactionAnswerData(TypedDict):
    error: NotRequired[SendError]
    id: BareId
    message: str
    status: MessageStatus
    timestamp: Timestamp


class ReactionAnswer(TypedDict):
    data: ReactionAnswerData
    message: Sentence
    success: bool


class ReactionRequest(TypedDict):
    message_id: MessageRef
    reaction: str


class ReadChatRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    read: bool


class SearchMeta(TypedDict):
    next_cursor: NextCursor


class SendAnswerData(TypedDict):
    error: NotRequired[SendError]
    id: BareId
    message: str
    message_id: MessageId
    status: MessageStatus
    timestamp: Timestamp


class SendAnswer(TypedDict):
    data: SendAnswerData
    message: Sentence
    success: bool


class SendError(TypedDict):
    code: Literal["not_on_network", "blocked", "restricted", "refused", "expired", "not_sent", "gave_up", "account_changed", "unsupported", "opted_out", "quota", "outside_window", "template", "held_back", "payment", "unknown_outcome"]
    message: Sentence
    until: NotRequired[Timestamp]


class StarRequest(TypedDict):
    message_id: MessageRef
    starred: bool


class StickerRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    file: FileToSend
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]


class Template(TypedDict):
    body: str
    category: str
    footer: NotRequired[str]
    header: NotRequired[str]
    language: str
    name: str
    reason: NotRequired[str]
    status: str


class TemplateAnswer(TypedDict):
    data: Template
    message: Sentence
    success: Success


class TemplateCreateRequest(TypedDict):
    body: str
    category: NotRequired[Literal["UTILITY", "MARKETING"]]
    examples: NotRequired[List[str]]
    footer: NotRequired[str]
    header: NotRequired[str]
    language: str
    name: str
    status: NotRequired[Literal["PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED"]]


class TemplateRequestButtonsItem(TypedDict):
    index: int
    payload: NotRequired[str]
    text: NotRequired[str]


class TemplateRequestHeader(TypedDict):
    file: NotRequired[FileToSend]
    text: NotRequired[str]


class TemplateRequest(TypedDict):
    buttons: NotRequired[List[TemplateRequestButtonsItem]]
    contact_id: AnyContactId
    header: NotRequired[TemplateRequestHeader]
    language: str
    name: str
    parameters: NotRequired[Union[List[str], Dict[str, str]]]
    reply_to: NotRequired[str]


class TemplatesAnswer(TypedDict):
    data: List[Template]
    message: Sentence
    success: Success


class TextRequest(TypedDict):
    contact_id: NotRequired[ToContact]
    group_id: NotRequired[ToGroup]
    linkPreview: NotRequired[BooleanLike]
    linkPreviewHighQuality: NotRequired[BooleanLike]
    mentions: NotRequired[List[AnyContactId]]
    message: str
    reply_to: NotRequired[ReplyTo]


class UploadAnswerData(TypedDict):
    expires_at: Timestamp
    filename: str
    id: str
    mimetype: str
    sha256: str
    size: int


class UploadAnswer(TypedDict):
    data: UploadAnswerData
    message: Sentence
    success: Success


class ValidationError(TypedDict):
    code: ErrorCode
    errors: Dict[str, List[Sentence]]
    message: str


class VideoAnswerDataMessage(TypedDict):
    caption: str
    details: MediaDetails
    video: str


class VideoAnswerData(TypedDict):
    error: NotRequired[SendError]
    id: BareId
    message: VideoAnswerDataMessage
    message_id: MessageId
    status: MessageStatus
    timestamp: Timestamp


class VideoAnswer(TypedDict):
    data: VideoAnswerData
    message: Sentence
    success: bool


class VideoRequest(TypedDict):
    caption: NotRequired[Caption]
    contact_id: NotRequired[ToContact]
    file: NotRequired[FileToSend]
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]
    videoUrl: NotRequired[Address]


class VoiceRequest(TypedDict):
    audioUrl: NotRequired[AudioAddress]
    contact_id: NotRequired[ToContact]
    file: NotRequired[FileToSend]
    group_id: NotRequired[ToGroup]
    reply_to: NotRequired[ReplyTo]


class Waiting(TypedDict):
    reason: Literal["pace", "quota", "restricted", "not_connected"]
    until: Optional[Timestamp]


class WebhookGapEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventGap
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["webhook.gap"]


class WebhookTestEvent(TypedDict):
    channel: ChannelCodeOrNone
    data: EventTest
    id: EventId
    seq: int
    timestamp: Timestamp
    type: Literal["webhook.test"]
