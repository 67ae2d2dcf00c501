//! Ten exchanges about a hard day: what the person says.

/// In English.
pub const ENGLISH: [&str; 10] = [
    "Hey. I had a really hard day.",
    "My boss yelled at me in front of the whole team.",
    "It wasn't even my mistake. A coworker sent the wrong file.",
    "I just stood there and couldn't say anything. I felt so small.",
    "Then I came home and had a fight with my husband about the dishes.",
    "I'm so tired. I haven't slept properly in weeks.",
    "What should I do?",
    "I don't know. Maybe I could talk to my sister.",
    "She called just now, actually. It helped a little.",
    "Thank you for listening. I'm going to bed now, good night.",
];

/// In Japanese.
pub const JAPANESE: [&str; 10] = [
    "こんばんは。今日は本当につらい一日でした。",
    "上司にみんなの前で怒鳴られたんです。",
    "私のミスじゃないのに。同僚が間違ったファイルを送ったんです。",
    "何も言い返せなくて、ただ立っていました。情けなかったです。",
    "家に帰ったら、夫と皿洗いのことで喧嘩になってしまって。",
    "もう疲れました。何週間もちゃんと眠れていません。",
    "どうしたらいいんでしょうか。",
    "わかりません。姉に話してみようかな。",
    "さっき姉から電話がありました。少し楽になりました。",
    "聞いてくれてありがとう。もう寝ます。おやすみなさい。",
];
