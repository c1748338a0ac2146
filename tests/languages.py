"""Sentences of many languages with their tokens and their spelling, written by hand.

They are the truth that Python and the page are compared with: `tests/house/test_languages.py`.
Each row is a sentence, its tokens with a space between two, and how these are spelt. Where the
spelling is left out, the sentence itself comes back.
"""

ZWJ, ZWNJ = "\u200d", "\u200c"

LANGUAGES: dict[str, list[tuple[str, str] | tuple[str, str, str]]] = {
    # --- words with marks -----------------------------------------------------------------------
    "Hindi": [
        ("हिन्दी में बात करो", "हिन्दी में बात करो"),
        ("क्या आप ठीक हैं? हाँ, मैं ठीक हूँ।", "क्या आप ठीक हैं ? हाँ , मैं ठीक हूँ ।"),
        ("उसने ५० रुपये दिए।", "उसने ५० रुपये दिए ।"),
    ],
    "Marathi": [("मला थोडं पाणी द्या.", "मला थोडं पाणी द्या .")],
    "Bengali": [("আমি বাংলায় গান গাই।", "আমি বাংলায় গান গাই ।")],
    "Punjabi": [("ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ?", "ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ ?")],
    "Gujarati": [("તમે કેમ છો?", "તમે કેમ છો ?")],
    "Tamil": [
        ("நான் தமிழ் பேசுகிறேன்.", "நான் தமிழ் பேசுகிறேன் ."),
        ("“வணக்கம்,” என்றான்.", "“ வணக்கம் , ” என்றான் ."),
    ],
    "Telugu": [("నేను తెలుగు మాట్లాడతాను.", "నేను తెలుగు మాట్లాడతాను .")],
    "Kannada": [("ನಾನು ಕನ್ನಡ ಮಾತನಾಡುತ್ತೇನೆ.", "ನಾನು ಕನ್ನಡ ಮಾತನಾಡುತ್ತೇನೆ .")],
    "Malayalam": [(f"അവന്{ZWJ} വന്നു.", f"അവന്{ZWJ} വന്നു .")],
    "Sinhala": [(f"ශ්{ZWJ}රී ලංකාව ලස්සනයි.", f"ශ්{ZWJ}රී ලංකාව ලස්සනයි .")],
    "Hebrew": [
        ("בְּרֵאשִׁית בָּרָא אֱלֹהִים", "בְּרֵאשִׁית בָּרָא אֱלֹהִים"),
        ("צה\"ל, ג'ירפה ובית־ספר.", "צה\"ל , ג'ירפה ובית־ספר ."),
        ("חז״ל אמרו: שלום!", "חז״ל אמרו : שלום !"),
    ],
    "Yiddish": [("ייִדיש איז אַ שפּראַך.", "ייִדיש איז אַ שפּראַך .")],
    "Arabic": [
        ("هٰذَا كِتَابٌ جَمِيلٌ.", "هٰذَا كِتَابٌ جَمِيلٌ ."),
        ("مرحبا، كيف حالك؟ أنا بخير؛ شكرا!", "مرحبا ، كيف حالك ؟ أنا بخير ؛ شكرا !"),
        ("النسبة ٣٫١٤", "النسبة ٣٫١٤"),
    ],
    "Persian": [
        (f"می{ZWNJ}خواهم کتاب{ZWNJ}ها را بخوانم.", f"می{ZWNJ}خواهم کتاب{ZWNJ}ها را بخوانم ."),
        ("«بله»، او گفت.", "« بله » ، او گفت ."),
    ],
    "Urdu": [("کیا آپ اردو بولتے ہیں؟ جی ہاں۔", "کیا آپ اردو بولتے ہیں ؟ جی ہاں ۔")],
    "Yoruba": [
        ("Ẹ káàárọ̀, ṣé dáadáa ni?", "ẹ káàárọ̀ , ṣé dáadáa ni ?", "ẹ káàárọ̀, ṣé dáadáa ni?"),
        ("Ó ń kọ́ ẹ̀kọ́.", "ó ń kọ́ ẹ̀kọ́ .", "ó ń kọ́ ẹ̀kọ́."),
    ],
    "Vietnamese": [
        ("Tôi đang học tiếng Việt.", "tôi đang học tiếng việt .", "tôi đang học tiếng việt."),
        ("Bạn khỏe không?", "bạn khỏe không ?", "bạn khỏe không?"),
    ],
    "Russian": [
        ("Где вокзал?", "где вокзал ?", "где вокзал?"),
        ("на́до знать: за́мок — не замо́к", "на́до знать : за́мок — не замо́к"),
        ("«Да», — сказал он.", "« да » , — сказал он .", "«да», — сказал он."),
        ("кто-то пришёл в 10:30", "кто-то пришёл в 10:30"),
    ],
    "Ukrainian": [
        (
            "У неї м'яч і п’ять об'єктів.",
            "у неї м'яч і п'ять об'єктів .",
            "у неї м'яч і п'ять об'єктів.",
        ),
        ("З'їж комп'ютер!", "з'їж комп'ютер !", "з'їж комп'ютер!"),
    ],
    # --- scripts without spaces -----------------------------------------------------------------
    "Thai": [
        ("ผมชอบกินข้าว", "ผ ม ช อ บ กิ น ข้ า ว"),
        ("ฉันดื่มน้ำ", "ฉั น ดื่ ม น้ำ"),
    ],
    "Lao": [("ສະບາຍດີ", "ສ ະ ບ າ ຍ ດີ"), ("ນ້ຳ", "ນ້ຳ")],
    "Khmer": [("ខ្ញុំស្រឡាញ់អ្នក។", "ខ្ញុំ ស្រ ឡា ញ់ អ្ន ក ។")],
    "Burmese": [("မြန်မာစာ", "မြ န် မာ စာ"), ("မင်္ဂလာပါ။", "မ င်္ဂ လာ ပါ ။")],
    "Tibetan": [("བཀྲ་ཤིས་བདེ་ལེགས།", "བཀྲ་ ཤིས་ བདེ་ ལེགས །")],
    "Chinese": [
        ("我喜欢猫，你呢？", "我 喜 欢 猫 ， 你 呢 ？"),
        ("他说：“好。”", "他 说 ： “ 好 。 ”"),
        ("我有3只《红楼梦》", "我 有 3 只 《 红 楼 梦 》"),
    ],
    "Japanese": [
        ("猫が好きです。", "猫 が 好 き で す 。"),
        ("「コーヒー」と、人々は言った。", "「 コ ー ヒ ー 」 と 、 人 々 は 言 っ た 。"),
        ("か\u3099くせい", "が く せ い", "がくせい"),
    ],
    # --- other scripts with spaces --------------------------------------------------------------
    "Korean": [
        ("안녕하세요, 저는 학생입니다.", "안녕하세요 , 저는 학생입니다 ."),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af!", "한글 !", "한글!"),
    ],
    "Georgian": [("„გამარჯობა“, თქვა მან.", "„ გამარჯობა “ , თქვა მან .")],
    "Armenian": [("Ինչպե՞ս ես, Արա՛մ։", "ինչպե՞ս ես , արա՛մ ։", "ինչպե՞ս ես, արա՛մ։")],
    "Amharic": [("ሰላም፣ እንዴት ነህ? ደህና ነኝ።", "ሰላም ፣ እንዴት ነህ ? ደህና ነኝ ።")],
    "Greek": [
        ("Ο ΟΔΥΣΣΕΥΣ ΕΙΝΑΙ ΚΑΛΟΣ.", "ο οδυσσευς ειναι καλος .", "ο οδυσσευς ειναι καλος."),
        ("Τι κάνεις; Καλά· εσύ;", "τι κάνεις ; καλά · εσύ ;", "τι κάνεις; καλά· εσύ;"),
        ("«Ναι», είπε ο Σάσσας.", "« ναι » , είπε ο σάσσας .", "«ναι», είπε ο σάσσας."),
    ],
    "Cherokee": [("ᎣᏏᏲ ᏣᎳᎩ", "ꭳꮟᏺ ꮳꮃꭹ", "ꭳꮟᏺ ꮳꮃꭹ")],
    # --- Latin letters --------------------------------------------------------------------------
    "Turkish": [
        ("İstanbul'da ısı düştü.", "istanbul'da ısı düştü .", "istanbul'da ısı düştü."),
        ("I\u0307ZMI\u0307R’E Çıktık!", "izmir'e çıktık !", "izmir'e çıktık!"),
    ],
    "German": [
        ("„Guten Tag“, sagte sie.", "„ guten tag “ , sagte sie .", "„guten tag“, sagte sie."),
        (
            "»Ja«, rief er, »geht's?«",
            "» ja « , rief er , » geht 's ? «",
            "»ja«, rief er, »geht's?«",
        ),
        ("Die Straße kostet 5 €.", "die straße kostet 5 € .", "die straße kostet 5 €."),
        ("Ein- und Ausgang", "ein- und ausgang", "ein- und ausgang"),
    ],
    "Dutch": [
        ("'s avonds eten we foto's", "'s avonds eten we foto 's"),
        ("ik ga 's avonds in 't huis", "ik ga 's avonds in ' t huis"),
    ],
    "Swedish": [
        ("”Hej”, sade USA:s kung.", "” hej ” , sade usa:s kung .", "”hej”, sade usa:s kung.")
    ],
    "Polish": [("„Cześć”, powiedział.", "„ cześć ” , powiedział .", "„cześć”, powiedział.")],
    "Hungarian": [("„Jó napot!” – mondta.", "„ jó napot ! ” – mondta .", "„jó napot!” – mondta.")],
    "Romanian": [("Într-o zi, m-am dus.", "într-o zi , m-am dus .", "într-o zi, m-am dus.")],
    "Spanish": [
        ("¿Dónde está? ¡Aquí!", "¿ dónde está ? ¡ aquí !", "¿dónde está? ¡aquí!"),
        ("Pero, ¿(tú) no “vienes”?", "pero , ¿ ( tú ) no “ vienes ” ?", "pero, ¿(tú) no “vienes”?"),
    ],
    "Portuguese": [("Dá-me água d'aí!", "dá-me água d' aí !", "dá-me água d'aí!")],
    "Italian": [
        ("un'amica dell'anno", "un' amica dell' anno"),
        (
            "C'è un po' d'acqua, all'ombra.",
            "c' è un po ' d' acqua , all' ombra .",
            "c'è un po' d'acqua, all'ombra.",
        ),
    ],
    "Catalan": [
        ("La col·lecció de l'home", "la col·lecció de l' home", "la col·lecció de l'home"),
    ],
    "Hawaiian": [("ʻO Hawaiʻi nō ia.", "ʻo hawaiʻi nō ia .", "ʻo hawaiʻi nō ia.")],
    "Uzbek": [("Oʻzbek tili gʼalati.", "oʻzbek tili gʼalati .", "oʻzbek tili gʼalati.")],
    "French": [
        ("L’arbre n'est-il pas là ?", "l' arbre n' est -il pas là ?", "l'arbre n'est-il pas là?"),
        (
            "« Oui », dit-il aujourd'hui.",
            "« oui » , dit -il aujourd'hui .",
            "« oui », dit-il aujourd'hui.",
        ),
        (
            "E\u0301te\u0301, quelqu'un a l’œuf.",
            "été , quelqu' un a l' œuf .",
            "été, quelqu'un a l'œuf.",
        ),
        ("Où va-t-il\u202f?", "où va -t-il ?", "où va-t-il?"),
    ],
    "English": [
        (
            "Don't! I can't, it isn't Tom's.",
            "do n't ! i ca n't , it is n't tom 's .",
            "don't! i can't, it isn't tom's.",
        ),
        (
            '"Yes," she said, "I will."',
            '" yes , " she said , " i will . "',
            '"yes," she said, "i will."',
        ),
        ("the dogs' bones and the cats' tails", "the dogs ' bones and the cats ' tails"),
        ("rock 'n' roll", "rock ' n ' roll"),
        ("He said 'no' and left.", "he said ' no ' and left .", "he said 'no' and left."),
        ("it cost $5 and/or 99% (or more)", "it cost $ 5 and / or 99 % ( or more )"),
        (
            "At 5 a.m. it was -5 in the U.S.A.",
            "at 5 a . m . it was -5 in the u . s . a .",
            "at 5 a.m. it was -5 in the u.s.a.",
        ),
        ("24/7 from 1914–1918 [sic]", "24 / 7 from 1914 – 1918 [ sic ]"),
        (
            "see https://a.org/b?c=d, me@example.org.",
            "see https://a.org/b?c=d , me@example.org .",
        ),
        ("an e-mail at 10:30 o'clock", "an e-mail at 10:30 o'clock"),
        ("wait... and “then” what…?", "wait . . . and “ then ” what … ?"),
        ("coo\u0308perate naïvely", "coöperate naïvely", "coöperate naïvely"),
    ],
    # --- signs ----------------------------------------------------------------------------------
    "Emoji": [
        (
            f"👩🏽{ZWJ}🚀 👨{ZWJ}👩{ZWJ}👧{ZWJ}👦 🇫🇷 1\ufe0f\u20e3 ❤\ufe0f",
            f"👩🏽{ZWJ}🚀 👨{ZWJ}👩{ZWJ}👧{ZWJ}👦 🇫🇷 1\ufe0f\u20e3 ❤\ufe0f",
        ),
        ("Guten Tag 😀!", "guten tag 😀 !", "guten tag 😀!"),
    ],
}
